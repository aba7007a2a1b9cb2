mod compacting;
mod fixture;
mod reading;
mod turning;
