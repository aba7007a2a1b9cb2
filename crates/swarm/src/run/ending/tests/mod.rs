mod failing;
mod finished_run;
mod not_applied;
mod proof;
mod unchanged;
mod unfinished;
mod words;
