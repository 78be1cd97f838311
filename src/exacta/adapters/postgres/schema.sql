-- What a log that several brokers share keeps in PostgreSQL. Every session has this schema as its search_path.
--
-- Each function that the leader calls takes the shared lock of the lead before it looks at the epoch, and a claim takes
-- it exclusively. A function is volatile and its transaction READ COMMITTED, so that each of its statements has a
-- snapshot of its own: this one sees what was committed before the lock was had. A look at the epoch in the statement
-- that waits for the lock, or in an insert's own, has an older snapshot, and lets an old leader in.
--
-- One statement is one transaction. So no broker that is stopped between two statements keeps a lock.

create table cluster (
  one boolean primary key default true check (one),
  version int not null,                        -- of this file; a broker refuses a newer one
  about bytea,                                 -- what the cluster was founded with, opaque
  closed boolean not null default false);      -- the log has gone elsewhere: nobody leads it here any more

-- Changed by claims, by changes of the catalog, and where another tail table takes over; never by an append. A row that
-- is changed thousands of times a second slows without bound while anybody holds an old snapshot.
create table head (
  one boolean primary key default true check (one),
  epoch bigint not null default 0,
  leader int,
  instance text,
  lock_key int not null default 0,             -- the leader's session holds the lock of this key
  catalog bigint not null default 0,           -- the version of the catalog
  tail_from bigint not null default 0,
  tail_from_catalog bigint not null default 0, -- the version with which the tail begins there
  tail_cut bigint not null default 0,          -- the groups before it are gone, though their table may not be empty yet
  tail_table int not null default 0,           -- the tail table that takes new groups
  table_from bigint not null default 0);       -- where it begins

-- Apart from `head`, which each append reads.
create table pulse (
  one boolean primary key default true check (one),
  beat bigint not null default 0,
  durable bigint not null default 0) with (fillfactor = 10);

create table entry (                           -- the catalog: which objects are the rest of the log
  key text primary key,
  kind smallint not null,
  base bigint not null,
  "end" bigint not null,
  generation int not null,
  last_checksum bigint not null,
  size bigint not null,
  checksum bigint not null,
  index_bytes bigint not null,
  index_checksum bigint not null,
  removed bigint,                              -- the version in which it was removed; a reader may still have an older one
  removed_at timestamptz);
create table intent (key text primary key, begun_at timestamptz not null);
create table garbage (key text primary key);

create table broker (
  node_id int primary key,
  instance text not null,
  instance_key int not null,                   -- its session holds the lock of this key
  about bytea not null,
  catalog bigint not null,
  position bigint not null,
  seen_at timestamptz not null);

create table object (                          -- the object store of who has no other one
  key text,
  part int,
  bytes bytea not null,
  primary key (key, part));
alter table object alter column bytes set storage external;

-- The tail: eight tables that are used in turn. A table whose groups are all gone is truncated, which costs nothing and
-- leaves nothing to vacuum. A group of more than 4 MiB is in parts. Bodies are never compressed, so that a part of one
-- can be read without the rest.
do $do$
begin
  for k in 0..7 loop
    execute format($ddl$
      create table tail_%1$s (
        position bigint, part int, end_position bigint not null, epoch bigint not null, durable bigint not null,
        catalog bigint not null, size bigint not null, body bytea not null, primary key (position, part));
      alter table tail_%1$s alter column body set storage external;

      -- Appends a group. Returns -1, or the present epoch where nothing was appended.
      create function append_%1$s(of_epoch bigint, begins bigint, ends bigint, durable_to bigint, catalog_known bigint,
                                  bytes bigint, body bytea, further bytea[]) returns bigint language plpgsql as $body$
      declare
        at head%%rowtype;
        last bigint;
      begin
        perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
        select * into at from head;
        if at.epoch <> of_epoch or at.tail_table <> %1$s then return at.epoch; end if;
        select t.end_position into last from tail_%1$s t order by t.position desc, t.part desc limit 1;
        if coalesce(last, at.table_from) <> begins then return at.epoch; end if;
        insert into tail_%1$s values (begins, 0, ends, of_epoch, durable_to, catalog_known, bytes, body);
        for part in 1..cardinality(further) loop  -- an element of an array is copied more often than an argument
          insert into tail_%1$s values (begins, part, ends, of_epoch, durable_to, catalog_known, bytes, further[part]);
        end loop;
        return -1;
      end $body$;
    $ddl$, k);
  end loop;
end $do$;

create view tail as
  select * from tail_0 union all select * from tail_1 union all select * from tail_2 union all select * from tail_3
  union all select * from tail_4 union all select * from tail_5 union all select * from tail_6
  union all select * from tail_7;

-- Where the tail ends, as far as this table has it; null if it is empty and has begun nowhere.
create function tail_end(of_table int) returns bigint language plpgsql stable as $body$
declare
  last bigint;
begin
  execute format('select t.end_position from tail_%s t order by t.position desc, t.part desc limit 1', of_table) into last;
  return coalesce(last, (select table_from from head where tail_table = of_table));
end $body$;

-- --- what the leader does ---------------------------------------------------------------------------------------------

-- Writes 104 bytes of WAL, which are flushed and replicated before this returns; no row changes. A commit that writes
-- nothing proves nothing: PostgreSQL does not wait for its disk or its standby then.
create function confirm(of_epoch bigint) returns bigint language plpgsql as $body$
declare
  present bigint;
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select epoch into present from head;
  if present <> of_epoch then return present; end if;
  perform pg_logical_emit_message(true, 'exacta', '');
  return -1;
end $body$;

-- A beat need not be durable, and so waits for neither disk nor standby.
create function beat(of_epoch bigint, durable_to bigint) returns bigint language plpgsql as $body$
declare
  present bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select epoch into present from head;
  if present <> of_epoch then return present; end if;
  update pulse set beat = beat + 1, durable = greatest(durable, durable_to);
  return -1;
end $body$;

-- What a leader was told of and is gone is lost; waits for disk and standby, unlike a beat.
create function accept_loss(of_epoch bigint, ends bigint) returns bigint language plpgsql as $body$
declare
  present bigint;
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select epoch into present from head;
  if present <> of_epoch then return present; end if;
  update pulse set durable = least(durable, ends);
  return -1;
end $body$;

-- Begins the epoch after the one that was seen. The session keeps the lock of its key for as long as it lives.
create function claim(seen_epoch bigint, node_id int, of_instance text, key int, out present bigint,
                      out tail_table int, out table_bytes bigint, out is_claimed boolean)
language plpgsql as $body$
begin
  perform pg_advisory_lock(hashtext(current_schema()), key);
  perform pg_advisory_xact_lock(hashtext(current_schema()), 0);
  update head set epoch = epoch + 1, leader = node_id, instance = of_instance, lock_key = key
    where epoch = seen_epoch and not (select closed from cluster);
  is_claimed := found;
  select head.epoch, head.tail_table into present, tail_table from head;
  table_bytes := pg_total_relation_size(format('tail_%s', tail_table));
end $body$;

-- Lets the next tail table take new groups, if it is empty. Returns the table that takes them from now on.
create function turn_tail(of_epoch bigint) returns int language plpgsql as $body$
declare
  at head%rowtype;
  next_table int;
  last bigint;
  is_empty boolean;
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select * into at from head for update;
  next_table := (at.tail_table + 1) % 8;
  last := tail_end(at.tail_table);
  execute format('select not exists (select from tail_%s)', next_table) into is_empty;
  if at.epoch <> of_epoch or last = at.table_from or not is_empty then return at.tail_table; end if;
  update head set tail_table = next_table, table_from = last;
  return next_table;
end $body$;

-- Empties the tail tables whose groups are all gone. A table that somebody reads is left for the next time: who
-- waits for its lock (behind a pg_dump, for hours) makes all later readers of the tail wait as well.
create function free_tail(of_epoch bigint) returns int language plpgsql as $body$
declare
  at head%rowtype;
  last bigint;
  freed int := 0;
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select * into at from head;
  for k in 0..7 loop
    continue when at.epoch <> of_epoch or k = at.tail_table;
    last := tail_end(k);
    continue when last is null or last > at.tail_cut;
    begin
      execute format('lock table tail_%s in access exclusive mode nowait', k);
      execute format('truncate tail_%s', k);
      freed := freed + 1;
    exception when lock_not_available then null;
    end;
  end loop;
  return freed;
end $body$;

-- --- what every broker does -------------------------------------------------------------------------------------------

create function found(with_about bytea) returns bytea language plpgsql as $body$
begin
  update cluster set about = with_about where about is null;
  return (select about from cluster);
end $body$;

create function found_again(of_epoch bigint, with_about bytea, closes boolean) returns bigint language plpgsql as $body$
declare
  present bigint;
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select epoch into present from head;
  if present <> of_epoch then return present; end if;
  update cluster set about = with_about, closed = closes;
  return -1;
end $body$;

create function read_tail(from_position bigint, max_bytes bigint) returns setof tail language plpgsql stable as $body$
declare
  piece tail%rowtype;
  next_position bigint := from_position;
  total bigint := 0;
begin
  if from_position < (select tail_cut from head) then return; end if;
  for piece in select * from tail t where t.position >= from_position order by t.position, t.part loop
    if piece.part = 0 then
      exit when piece.position <> next_position or (total > 0 and total + piece.size > max_bytes);
      total := total + greatest(piece.size, 1);
      next_position := piece.end_position;
    end if;
    return next piece;
  end loop;
end $body$;

-- The version of the catalog that every broker knows that is not gone.
create function seen_by_all(gone_after interval) returns bigint language sql as $body$
  select coalesce((select min(b.catalog) from broker b where b.seen_at > clock_timestamp() - gone_after),
                  (select h.catalog from head h))
$body$;

create function cut_tail(gone_after interval) returns void language sql as $body$
  update head set tail_cut = tail_from where tail_cut < tail_from and tail_from_catalog <= seen_by_all(gone_after)
$body$;

-- False where another instance with this node id lives. One that has ended has left the lock of its key.
create function announce(of_node int, of_instance text, key int, with_about bytea, knows bigint, at bigint,
                         gone_after interval) returns boolean language plpgsql as $body$
declare
  other broker%rowtype;
begin
  perform pg_advisory_xact_lock(hashtext(current_schema() || '.node'), of_node);
  select * into other from broker where node_id = of_node;
  if other.instance <> of_instance and other.seen_at > clock_timestamp() - gone_after
     and not pg_try_advisory_xact_lock(hashtext(current_schema() || '.broker'), other.instance_key) then
    return false;
  end if;
  insert into broker values (of_node, of_instance, key, with_about, knows, at, clock_timestamp())
    on conflict (node_id) do update set instance = excluded.instance, instance_key = excluded.instance_key,
      about = excluded.about, catalog = excluded.catalog, position = excluded.position, seen_at = excluded.seen_at;
  perform cut_tail(gone_after);
  return true;
end $body$;

-- --- the catalog ------------------------------------------------------------------------------------------------------

-- Returns the new version, or minus one minus the present epoch where nothing was changed.
create function change_catalog(of_epoch bigint, added jsonb, removed_keys text[], begins bigint, gone_after interval)
returns bigint language plpgsql as $body$
declare
  at head%rowtype;
  version bigint;
  intended int;
  present int;
begin
  perform pg_advisory_xact_lock_shared(hashtext(current_schema()), 0);
  select * into at from head for update;
  select count(*) into present from entry e where e.key = any(removed_keys) and e.removed is null;
  with taken as (select 1 from intent i where i.key in (select value ->> 'key' from jsonb_array_elements(added)) for update)
    select count(*) into intended from taken;
  if at.epoch <> of_epoch or present <> cardinality(removed_keys) or intended <> jsonb_array_length(added) then
    return -1 - at.epoch;
  end if;
  version := at.catalog + 1;
  delete from intent i where i.key in (select value ->> 'key' from jsonb_array_elements(added));
  update entry e set removed = version, removed_at = clock_timestamp() where e.key = any(removed_keys);
  insert into entry select * from jsonb_populate_recordset(null::entry, added);
  -- Beyond the end of an empty tail the log was written elsewhere: that is where this table begins.
  update head set catalog = version, tail_from = coalesce(begins, tail_from),
    table_from = case when begins > tail_end(tail_table) then begins else table_from end,
    tail_from_catalog = case when begins is null then tail_from_catalog else version end;
  perform cut_tail(gone_after);
  return version;
end $body$;

create function sweep(gone_after interval, sweep_after interval) returns setof text language plpgsql as $body$
begin
  perform 1 from head for update;
  perform cut_tail(gone_after);
  with given_up as (delete from intent where begun_at <= clock_timestamp() - sweep_after returning key)
    insert into garbage select key from given_up;
  with unread as (
      delete from entry where removed <= seen_by_all(gone_after) and removed_at <= clock_timestamp() - sweep_after returning key)
    insert into garbage select key from unread;
  return query select key from garbage order by key;
end $body$;
