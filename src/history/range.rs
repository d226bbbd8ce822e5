//! From two endpoints to the graph between them.

use super::paths::Limits;
use super::{Error, History, id, subject};
use crate::model::CommitId;
use crate::search::{Dag, Node};
use git2::{ErrorCode, Oid};
use std::collections::{HashMap, HashSet};

/// What lies between the endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The candidates and their boundary.
    pub dag: Dag,
    /// Where good is not an ancestor of bad: all their merge bases, sorted; each stands in the graph as a boundary
    /// node. Empty where good is an ancestor of bad.
    pub merge_bases: Vec<CommitId>,
}

/// Each candidate's parents, without repetition.
type Parents = HashMap<Oid, Vec<Oid>>;

impl History {
    /// The commits reachable from `bad` and not from `good`, with their boundary. With `paths` (git pathspecs relative
    /// to the top of the repository: files, directories, globs, `:!excluded`) each node says whether it changes one of
    /// them; the range itself stays whole.
    pub fn range(&self, good: &CommitId, bad: &CommitId, paths: &[String]) -> Result<Range, Error> {
        let (good_oid, bad_oid) = (self.find(good)?.id(), self.find(bad)?.id());
        let merge_bases = self.check_endpoints(good, bad)?;
        let parents = self.candidates(good_oid, bad_oid)?;
        let order = parents_first(bad_oid, &parents);
        let limits = if paths.is_empty() { None } else { Some(Limits::parse(paths)?) };

        let mut nodes = Vec::with_capacity(order.len() + 1);
        let mut index = HashMap::with_capacity(order.len() + 1);
        for oid in boundary(&order, &parents) {
            index.insert(oid, nodes.len());
            nodes.push(self.node(oid, Vec::new(), true, limits.as_ref())?);
        }
        for oid in order {
            let at = parents[&oid].iter().map(|parent| index[parent]).collect();
            index.insert(oid, nodes.len());
            nodes.push(self.node(oid, at, false, limits.as_ref())?);
        }
        if let Some(limits) = &limits {
            limits.check_used(self, &nodes, [good, bad])?;
        }
        let dag = Dag::new(nodes).expect("parents were put before their children, and each commit once");
        Ok(Range { dag, merge_bases })
    }

    /// Refuses endpoints without a range; gives the merge bases where good is not an ancestor of bad.
    fn check_endpoints(&self, good: &CommitId, bad: &CommitId) -> Result<Vec<CommitId>, Error> {
        let refuse = |reason: &str| {
            Err(Error::NoRange { good: good.clone(), bad: bad.clone(), reason: reason.to_owned() })
        };
        if good == bad {
            return refuse("they are the same commit");
        }
        let bases = match self.repo.merge_bases(self.oid(good)?, self.oid(bad)?) {
            Ok(bases) => bases,
            Err(error) if error.code() == ErrorCode::NotFound && error.class() != git2::ErrorClass::Odb => {
                return refuse("their histories are unrelated, they have no common ancestor");
            }
            Err(error) => return Err(self.unreadable("the merge bases of the endpoints", error)),
        };
        let mut bases: Vec<CommitId> = bases.iter().copied().map(id).collect();
        bases.sort();
        if bases.contains(bad) {
            return refuse(
                "bad is an ancestor of good; you may have swapped good and bad: swap them, or use --find improvement \
                 to look for what made the later one faster",
            );
        }
        if bases.contains(good) {
            bases.clear();
        }
        Ok(bases)
    }

    fn candidates(&self, good: Oid, bad: Oid) -> Result<Parents, Error> {
        let failed = |error| self.unreadable(&format!("the history between {good} and {bad}"), error);
        let mut walk = self.repo.revwalk().map_err(failed)?;
        walk.push(bad).map_err(failed)?;
        walk.hide(good).map_err(failed)?;
        let mut all = Parents::new();
        for oid in walk {
            let oid = oid.map_err(failed)?;
            let commit = self.commit(oid)?;
            let mut seen = HashSet::new();
            all.insert(oid, commit.parent_ids().filter(|&parent| seen.insert(parent)).collect());
        }
        Ok(all)
    }

    fn node(
        &self,
        oid: Oid,
        parents: Vec<usize>,
        boundary: bool,
        limits: Option<&Limits>,
    ) -> Result<Node, Error> {
        let commit = self.commit(oid)?;
        let on_path = match limits {
            None => true,
            Some(limits) => limits.touched_by(self, &commit)?,
        };
        Ok(Node { commit: id(oid), subject: subject(&commit), parents, boundary, on_path })
    }
}

/// Orders the candidates parents first, `bad` last. Depends on the graph alone, so that the same range always gets
/// the same indexes; a side branch stays together.
fn parents_first(bad: Oid, parents: &Parents) -> Vec<Oid> {
    let mut children: HashMap<Oid, usize> = HashMap::with_capacity(parents.len());
    for parent in parents.values().flatten().filter(|parent| parents.contains_key(parent)) {
        *children.entry(*parent).or_default() += 1;
    }
    let mut order = Vec::with_capacity(parents.len());
    let mut ready = vec![bad];
    while let Some(oid) = ready.pop() {
        order.push(oid);
        for parent in &parents[&oid] {
            if let Some(left) = children.get_mut(parent) {
                *left -= 1;
                if *left == 0 {
                    ready.push(*parent);
                }
            }
        }
    }
    order.reverse();
    order
}

/// The parents outside the range, in the order in which the candidates name them.
fn boundary(order: &[Oid], parents: &Parents) -> Vec<Oid> {
    let mut seen = HashSet::new();
    order
        .iter()
        .flat_map(|oid| &parents[oid])
        .copied()
        .filter(|parent| !parents.contains_key(parent) && seen.insert(*parent))
        .collect()
}
