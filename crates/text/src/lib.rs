//! Text utilities: byte ranges, LSP positions, content hashes, diffs and change sets.

mod change;
mod diff;
mod harmless;
mod hash;
mod invisible;
mod position;
mod positioned;
mod range;

pub use change::whole_lines;
pub use change::{ApplyMismatch, Carried, ChangeSet, Conflict, Edit};
pub use diff::{deleted_file_diff, new_file_diff, unified_diff};
pub use harmless::{harmless, harmless_json, is_deceptive, is_plain_name};
pub use hash::ContentHash;
pub use invisible::{invisible, visible};
pub use position::{Encoding, Position, offset_of, position_of};
pub use positioned::{PositionedChange, differing_lines, lines_in_words};
pub use range::ByteRange;
