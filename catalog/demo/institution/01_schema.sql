-- The demo institution. Portable between SQLite and PostgreSQL; a statement
-- ends at a semicolon at the end of a line, and no text contains one.

create table estudiantes (
  estudiante_id text primary key,
  nombre text not null,
  carrera text not null,
  ingreso text not null
);

create table cursos (
  curso text primary key,
  nombre text not null,
  creditos integer not null
);

create table matriculas (
  estudiante_id text not null references estudiantes (estudiante_id),
  curso text not null references cursos (curso),
  periodo text not null,
  nota double precision,
  primary key (estudiante_id, curso)
);

create table becas (
  estudiante_id text not null references estudiantes (estudiante_id),
  monto double precision not null,
  motivo text not null
);

create index becas_estudiante on becas (estudiante_id);

-- One row for each effect that happened, written in the effect's own
-- transaction: after a crash, a row means done.
create table anuencia_effects (
  execution_id text not null,
  step integer not null,
  result text not null,
  at text not null,
  primary key (execution_id, step)
);

create view v_matricula as
select m.estudiante_id, e.nombre as estudiante, e.carrera, m.periodo, m.curso, c.nombre as curso_nombre, c.creditos, m.nota
from matriculas m
join estudiantes e on e.estudiante_id = m.estudiante_id
join cursos c on c.curso = m.curso;
