mod blocks;
mod claims;
mod fixture;
mod moving;
mod notation;
mod refuted;
mod wrong;
