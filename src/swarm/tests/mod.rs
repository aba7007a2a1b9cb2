mod bed;
mod flow;
