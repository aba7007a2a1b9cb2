mod answering;
mod bounds;
mod fixture;
mod follow;
mod material;
