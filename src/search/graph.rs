//! The shape of a range without its names, packed for passes over a hundred thousand commits.

use super::Dag;

/// Parents and children by node, parents before children. Nodes are numbered as in the [`Dag`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    parents: Edges,
    children: Edges,
    boundary: Vec<bool>,
}

/// Lists of nodes, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edges {
    start: Vec<u32>,
    to: Vec<u32>,
}

impl Edges {
    fn of(lists: &[Vec<usize>]) -> Self {
        let mut start = vec![0];
        let mut to = Vec::new();
        for list in lists {
            to.extend(list.iter().map(|&at| at as u32));
            start.push(to.len() as u32);
        }
        Self { start, to }
    }

    fn of_node(&self, node: usize) -> &[u32] {
        &self.to[self.start[node] as usize..self.start[node + 1] as usize]
    }
}

impl Graph {
    /// From lists of parents, each earlier than its child, and the nodes that are no candidates.
    pub fn new(parents: &[Vec<usize>], boundary: Vec<bool>) -> Self {
        let mut children = vec![Vec::new(); parents.len()];
        for (at, list) in parents.iter().enumerate() {
            for &parent in list {
                children[parent].push(at);
            }
        }
        Self { parents: Edges::of(parents), children: Edges::of(&children), boundary }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.boundary.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.boundary.is_empty()
    }

    /// Whether a node is no candidate, being an ancestor of the good endpoint or it.
    pub fn is_boundary(&self, node: usize) -> bool {
        self.boundary[node]
    }

    /// Parents of a node, in git's order.
    pub fn parents(&self, node: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.parents.of_node(node).iter().map(|&at| at as usize)
    }

    /// Children of a node.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.children.of_node(node).iter().map(|&at| at as usize)
    }

    /// Whether `parent` and `child` stand in one line: no fork, no merge between them.
    pub fn is_straight(&self, parent: usize, child: usize) -> bool {
        self.children.of_node(parent).len() == 1 && self.parents.of_node(child).len() == 1
    }

    /// Marks of a node and all its ancestors.
    pub fn ancestors(&self, node: usize) -> Vec<bool> {
        let mut mark = vec![false; self.len()];
        mark[node] = true;
        for at in (0..=node).rev() {
            if mark[at] {
                for parent in self.parents(at) {
                    mark[parent] = true;
                }
            }
        }
        mark
    }

    /// Whether `ancestor` is `node` or an ancestor of it.
    pub fn reaches(&self, ancestor: usize, node: usize) -> bool {
        ancestor <= node && self.ancestors(node)[ancestor]
    }
}

impl From<&Dag> for Graph {
    fn from(dag: &Dag) -> Self {
        let parents: Vec<Vec<usize>> = dag.nodes().iter().map(|n| n.parents.clone()).collect();
        Self::new(&parents, dag.nodes().iter().map(|n| n.boundary).collect())
    }
}
