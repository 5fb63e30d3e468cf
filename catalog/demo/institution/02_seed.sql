-- Two students with a few courses. A course without a grade is being taken now.

insert into estudiantes (estudiante_id, nombre, carrera, ingreso) values
  ('2023-114', 'Lucía Quispe Rojas', 'Ingeniería de Sistemas', '2023'),
  ('2020-001', 'Martín Núñez Peña', 'Economía', '2020');

insert into cursos (curso, nombre, creditos) values
  ('MAT-101', 'Cálculo I', 5),
  ('PRO-110', 'Fundamentos de Programación', 4),
  ('COM-105', 'Redacción Académica', 3),
  ('FIS-102', 'Física General', 4),
  ('ECO-201', 'Microeconomía', 4),
  ('EST-210', 'Estadística Aplicada', 4);

insert into matriculas (estudiante_id, curso, periodo, nota) values
  ('2023-114', 'MAT-101', '2026-1', 14),
  ('2023-114', 'PRO-110', '2026-1', 17),
  ('2023-114', 'COM-105', '2026-1', 15),
  ('2023-114', 'FIS-102', '2026-2', null),
  ('2020-001', 'MAT-101', '2025-2', 11),
  ('2020-001', 'ECO-201', '2026-1', 16),
  ('2020-001', 'EST-210', '2026-2', null);

insert into becas (estudiante_id, monto, motivo) values
  ('2020-001', 1800, 'Apoyo de alimentación del periodo 2025-2');
