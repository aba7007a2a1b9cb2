mod fixture;
mod imports;
mod methods;
mod names;
mod outside;
mod pytest_fixtures;
mod termination;
mod types;
