mod asking;
mod real;
mod schedules;
mod scripted;
