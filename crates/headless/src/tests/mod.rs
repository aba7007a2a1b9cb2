//! Tests of the shipped server through the in-memory pipe.

mod apply;
mod documents;
mod opening;
mod protocol;
mod runs;
