//! Tests of the whole server over TCP, with a scripted model.

mod bed;
mod ending;
mod queue;
mod statuses;
mod streams;
