mod bed;
mod flow;
mod misbehave;
