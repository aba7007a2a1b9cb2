mod answering;
mod bed;
mod bounds;
mod follow;
mod material;
