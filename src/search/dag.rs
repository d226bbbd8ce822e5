//! The commit graph of a range as plain data. `history` fills it once; tests draw it.

use crate::model::CommitId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// One commit of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its id.
    pub commit: CommitId,
    /// First line of its message.
    pub subject: String,
    /// Parents, as indexes of earlier nodes, in git's order. Empty for a boundary node.
    pub parents: Vec<usize>,
    /// Not a candidate: an ancestor of the good endpoint (or it) that is a parent of some candidate.
    pub boundary: bool,
    /// Whether it touches the path limits; `true` for all when there are none.
    pub on_path: bool,
}

/// Candidates (all commits reachable from bad and not from good) and their boundary, parents before children; the
/// bad endpoint is the last node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Node>", into = "Vec<Node>")]
pub struct Dag {
    nodes: Vec<Node>,
    index: HashMap<CommitId, usize>,
}

impl Dag {
    /// Checks order and uniqueness. Errors name the node.
    pub fn new(nodes: Vec<Node>) -> Result<Self, String> {
        let mut index = HashMap::with_capacity(nodes.len());
        for (at, node) in nodes.iter().enumerate() {
            if node.parents.iter().any(|&p| p >= at) {
                return Err(format!("commit {} stands before one of its parents", node.commit));
            }
            if index.insert(node.commit.clone(), at).is_some() {
                return Err(format!("commit {} stands twice", node.commit));
            }
        }
        Ok(Self { nodes, index })
    }

    /// All nodes, parents before children.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Number of nodes, boundary included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Number of candidates (nodes that are not boundary).
    pub fn candidates(&self) -> usize {
        self.nodes.iter().filter(|n| !n.boundary).count()
    }

    /// Where a commit stands, if it is in the graph.
    pub fn index(&self, commit: &CommitId) -> Option<usize> {
        self.index.get(commit).copied()
    }

    /// Marks of `of` and all its ancestors in the graph.
    pub fn ancestors(&self, of: usize) -> Vec<bool> {
        let mut mark = vec![false; self.nodes.len()];
        mark[of] = true;
        for at in (0..=of).rev() {
            if mark[at] {
                for &parent in &self.nodes[at].parents {
                    mark[parent] = true;
                }
            }
        }
        mark
    }

    /// Children of each node.
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for &parent in &node.parents {
                children[parent].push(at);
            }
        }
        children
    }
}

impl TryFrom<Vec<Node>> for Dag {
    type Error = String;
    fn try_from(nodes: Vec<Node>) -> Result<Self, String> {
        Self::new(nodes)
    }
}

impl From<Dag> for Vec<Node> {
    fn from(dag: Dag) -> Self {
        dag.nodes
    }
}
