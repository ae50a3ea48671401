-- The sum of bigint, as bigint. That of Postgres is numeric, which a parallel worker is slow to hand over for each group.
-- Beyond bigint it is an error: 10^9 millicores for 290 years.
CREATE AGGREGATE total(bigint) (
  SFUNC = int8pl, STYPE = bigint, INITCOND = '0', COMBINEFUNC = int8pl, PARALLEL = SAFE
);
