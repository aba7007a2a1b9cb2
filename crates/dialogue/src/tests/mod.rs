mod bed;
mod compacting;
mod reading;
mod turning;
