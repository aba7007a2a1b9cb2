mod bed;
mod cut;
mod flow;
mod misbehave;
