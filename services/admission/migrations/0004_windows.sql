create table windows (
  name text primary key,
  pool text not null references pools,
  -- events.v1.WindowConfigured
  config bytea not null
);
