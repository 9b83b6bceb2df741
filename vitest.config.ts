/** How the tests run: one project per tier, and a tier is a folder below test/. */
import { defineConfig } from 'vitest/config'
import { apiOnPostgres, programsOnPostgres } from './test/support/databases.ts'
import { CountReporter } from './test/support/reporter.ts'
import { SlowFirst } from './test/support/slow-first.ts'

const buildWeb = 'test/support/build-web.ts'
const startPostgres = 'test/support/start-postgres.ts'

/** A project whose services keep their rows in SQLite unless a test says otherwise. */
function onSqlite(name: string, globalSetup: readonly string[] = [buildWeb]) {
  return {
    extends: true as const,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      globalSetup: [...globalSetup],
      provide: { database: 'sqlite' as const },
    },
  }
}

/** A project whose services keep their rows in PostgreSQL. */
function onPostgres(name: string, include: readonly string[]) {
  return {
    extends: true as const,
    test: {
      name,
      include: [...include],
      globalSetup: [buildWeb, startPostgres],
      provide: { database: 'postgres' as const },
    },
  }
}

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from there.
export default defineConfig({
  test: {
    setupFiles: ['test/support/setup.ts'],
    reporters: ['default', new CountReporter()],
    sequence: { sequencer: SlowFirst },
    pool: 'forks',
    // Each worker loads the service once. No file changes what others see.
    isolate: false,
    // The tests wait more than they compute: on two cores, two workers leave a third of the processor idle.
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // On a busy machine a condition may take long to become true.
    expect: { poll: { timeout: 15_000 } },
    projects: [
      onSqlite('unit'),
      onSqlite('api'),
      onSqlite('process'),
      onSqlite('browser'),
      onSqlite('programs'),
      onPostgres('cluster', ['test/cluster/**/*.test.ts']),
      onPostgres('api-postgres', apiOnPostgres),
      onPostgres('programs-postgres', programsOnPostgres),
    ],
  },
})
