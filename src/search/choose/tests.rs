use super::*;
use crate::model::CommitId;
use crate::search::Node;

/// A graph from parent lists; node 0 is the good boundary.
fn dag(parents: &[&[usize]]) -> Dag {
    let node = |(at, parents): (usize, &&[usize])| Node {
        commit: CommitId::parse(&format!("{at:040x}")).expect("an id"),
        subject: format!("c{at}"),
        parents: parents.to_vec(),
        boundary: at == 0,
        on_path: true,
    };
    Dag::new(parents.iter().enumerate().map(node).collect()).expect("a graph")
}

fn linear(n: usize) -> Dag {
    let parents: Vec<Vec<usize>> = (0..n).map(|at| if at == 0 { vec![] } else { vec![at - 1] }).collect();
    dag(&parents.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Searches with a perfect oracle; gives the end and the measured nodes.
fn search(dag: &Dag, bad: impl Fn(usize) -> bool, broken: impl Fn(usize) -> bool) -> (Next, Vec<usize>) {
    let mut knowledge = Knowledge::of_endpoints(dag);
    knowledge.0[0] = Known::Good;
    let mut measured = Vec::new();
    loop {
        let remaining = knowledge.remaining(dag).expect("one step, no contradiction");
        let targets = match next(dag, &knowledge, &remaining, false) {
            Next::Measure(at) => vec![at],
            Next::MeasureParents(parents) => parents,
            end @ (Next::Culprit(_) | Next::Set(_) | Next::Contradiction) => return (end, measured),
        };
        for at in targets {
            measured.push(at);
            knowledge.0[at] = match (broken(at), bad(at)) {
                (true, _) => Known::Untestable,
                (false, true) => Known::Bad,
                (false, false) => Known::Good,
            };
        }
    }
}

#[test]
fn every_culprit_of_a_line_is_found_in_log2_steps() {
    let dag = linear(65);
    for culprit in 1..65 {
        let (end, measured) = search(&dag, |at| at >= culprit, |_| false);
        assert_eq!(end, Next::Culprit(culprit));
        assert!(measured.len() <= 6, "{culprit}: {measured:?}");
    }
}

#[test]
fn a_merge_of_two_good_sides_is_the_culprit() {
    // 0 base; 1, 2 the side; 3 main; 4 the merge; 5 on top.
    let dag = dag(&[&[], &[0], &[1], &[0], &[3, 2], &[4]]);
    let (end, measured) = search(&dag, |at| at >= 4, |_| false);
    assert_eq!(end, Next::Culprit(4));
    assert!(measured.contains(&2) && measured.contains(&3), "both parents are measured: {measured:?}");
}

#[test]
fn only_untestable_commits_before_the_first_bad_one_make_a_set() {
    // Case 10: c1, c2 good, c7 bad, c3..c6 do not build.
    let dag = linear(8);
    let (end, _) = search(&dag, |at| at >= 5, |at| (3..=6).contains(&at));
    assert_eq!(end, Next::Set(vec![3, 4, 5, 6, 7]));
}

#[test]
fn a_side_branch_that_never_boots_is_left_alone() {
    // Case 11: 200 commits, of which 40 on a side branch that never boots; the culprit is on the main line.
    let (main, side, fork, merge) = (160_usize, 40_usize, 60_usize, 100_usize);
    let mut parents: Vec<Vec<usize>> = vec![vec![]];
    let mut is_side = vec![false];
    let mut line = 0;
    for step in 1..=main {
        if step == fork {
            let mut at = line;
            for _ in 0..side {
                parents.push(vec![at]);
                is_side.push(true);
                at = parents.len() - 1;
            }
        }
        let side_tip = fork - 1 + side;
        parents.push(if step == merge { vec![line, side_tip] } else { vec![line] });
        is_side.push(false);
        line = parents.len() - 1;
    }
    let dag = dag(&parents.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for culprit in (1..dag.len()).filter(|&at| !is_side[at]) {
        let bad: Vec<bool> = (0..dag.len()).map(|at| dag.ancestors(at)[culprit]).collect();
        let (end, measured) = search(&dag, |at| bad[at], |at| is_side[at]);
        let inside = measured.iter().filter(|&&at| is_side[at]).count();
        assert!(inside <= 6, "culprit {culprit}: {inside} builds in the branch: {measured:?}");
        assert!(measured.len() <= 8 + 6, "culprit {culprit}: {} builds: {measured:?}", measured.len());
        match end {
            Next::Culprit(found) => assert_eq!(found, culprit),
            // The merge itself: its side parent cannot be measured, so the branch stays under suspicion.
            Next::Set(set) => assert!(set.contains(&culprit) && !is_side[culprit], "{culprit}: {set:?}"),
            Next::Measure(_) | Next::MeasureParents(_) => unreachable!("search() ends at an end"),
            Next::Contradiction => panic!("{culprit}: one step has no contradiction"),
        }
    }
}

#[test]
fn a_broken_stretch_is_left_at_its_edges() {
    // 100 commits, 30 in the middle do not build: a culprit away from the stretch is named, one inside or at
    // its edge gives a set that holds it.
    let dag = linear(101);
    let broken = |at: usize| (40..70).contains(&at);
    for culprit in 1..=100 {
        let (end, measured) = search(&dag, |at| at >= culprit, broken);
        let tries = measured.iter().filter(|&&at| broken(at)).count();
        assert!(tries <= 12, "culprit {culprit}: {tries} tries in the stretch: {measured:?}");
        match end {
            Next::Culprit(found) => assert_eq!(found, culprit),
            Next::Set(set) => {
                assert!(set.contains(&culprit) && (34..=76).contains(&culprit), "{culprit}: {set:?}");
            }
            Next::Measure(_) | Next::MeasureParents(_) => unreachable!("search() ends at an end"),
            Next::Contradiction => panic!("{culprit}: one step has no contradiction"),
        }
    }
}

#[test]
fn a_good_commit_after_a_bad_ancestor_is_reported_as_a_pair() {
    let dag = linear(9);
    let mut knowledge = Knowledge::of_endpoints(&dag);
    knowledge.0[2] = Known::Bad;
    knowledge.0[4] = Known::Good;
    assert_eq!(knowledge.contradictions(&dag), vec![(2, 4)]);
    let remaining = knowledge.remaining(&dag).expect("the edge after 4 remains");
    assert_eq!((remaining.tip, remaining.count()), (8, 4));
}

#[test]
fn outside_the_paths_nothing_is_halved_but_the_true_parent_is_measured() {
    // Case 7: p1, p3 on the path; p2 is the slow one.
    let mut nodes: Vec<Node> = linear(5).into();
    for node in [2, 4] {
        nodes[node].on_path = false;
    }
    let dag = Dag::new(nodes).expect("a graph");
    let mut knowledge = Knowledge::of_endpoints(&dag);
    knowledge.0[1] = Known::Good;
    knowledge.0[3] = Known::Bad;
    let remaining = knowledge.remaining(&dag).expect("suspects");
    assert_eq!(next(&dag, &knowledge, &remaining, true), Next::MeasureParents(vec![2]));
}

#[test]
fn a_tip_that_inherits_the_change_from_behind_a_good_commit_is_not_named() {
    // 0 to 6 the main line with the step at 2 and its repair at 4; 7 forked at 3; 8 merges it; 9 on top.
    let dag = dag(&[&[], &[0], &[1], &[2], &[3], &[4], &[5], &[3], &[6, 7], &[8]]);
    let (end, measured) = search(&dag, |at| [2, 3, 7, 8, 9].contains(&at), |_| false);
    assert!(measured.contains(&3), "{measured:?}");
    assert_eq!(end, Next::Contradiction);
}
