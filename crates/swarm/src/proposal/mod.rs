//! The stages of a proposal: draft, joint check, review, apply, undo.

pub(crate) mod apply;
pub(crate) mod approval;
pub(crate) mod auto_imports;
pub(crate) mod awaited;
pub(crate) mod by_rule;
pub(crate) mod candidates;
pub(crate) mod dependence;
pub(crate) mod draft;
pub(crate) mod edited;
pub(crate) mod ended;
pub(crate) mod joint_check;
pub(crate) mod landing;
pub(crate) mod made;
pub(crate) mod objection;
pub(crate) mod outcome;
pub(crate) mod parts;
pub(crate) mod permission;
pub(crate) mod propose;
pub(crate) mod renew;
pub(crate) mod review;
pub(crate) mod send;
pub(crate) mod set;
pub(crate) mod set_evidence;
pub(crate) mod small_replies;
pub(crate) mod undo;
pub(crate) mod undo_error;
