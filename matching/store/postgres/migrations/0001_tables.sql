-- The tables of a store. {s} is the schema. The doc of the package explains the layout.

CREATE TABLE {s}.partition (
  key       int8  PRIMARY KEY,
  namespace bytea NOT NULL,
  queue     bytea NOT NULL,
  type      int2  NOT NULL,
  number    int4  NOT NULL,
  epoch     int8  NOT NULL,
  node      bytea NOT NULL,
  run_id    bytea NOT NULL,
  address   bytea NOT NULL,
  released  bool  NOT NULL,
  may_hold  bool  NOT NULL,
  listed    bool  NOT NULL,
  acks      bytea NOT NULL,
  backlog   int8  NOT NULL,
  UNIQUE (namespace, queue, type, number)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE {s}.task (
  key  int8  NOT NULL,
  pri  int2  NOT NULL,
  id   int8  NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (key, pri, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE TABLE {s}.scheduled (
  key  int8  NOT NULL,
  due  int8  NOT NULL,
  id   int8  NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (key, due, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE INDEX scheduled_by_id ON {s}.scheduled (key, id);

CREATE TABLE {s}.lease (
  key  int8  NOT NULL,
  id   int8  NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (key, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE TABLE {s}.dead (
  key  int8  NOT NULL,
  id   int8  NOT NULL,
  body bytea NOT NULL,
  PRIMARY KEY (key, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE TABLE {s}.request (
  key  int8  NOT NULL,
  name bytea NOT NULL,
  id   int8  NOT NULL,
  at   int8  NOT NULL,
  PRIMARY KEY (key, name)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);

CREATE TABLE {s}.settings (
  namespace bytea NOT NULL,
  queue     bytea NOT NULL,
  type      int2  NOT NULL,
  version   int8  NOT NULL,
  doc       bytea,
  PRIMARY KEY (namespace, queue, type)
);
