/** Configures the test projects; each one is a folder below test/. */
import { defineConfig } from 'vitest/config'
import { onPostgres } from './test/support/databases.ts'
import { CountReporter } from './test/support/reporter.ts'
import { SlowFirst } from './test/support/slow-first.ts'

const buildWeb = 'test/support/build-web.ts'
const startPostgres = 'test/support/start-postgres.ts'

/** Creates a project whose services use SQLite unless a test sets another database. */
function withSqlite(name: string) {
  return {
    extends: true as const,
    test: {
      name,
      include: [`test/${name}/**/*.test.ts`],
      globalSetup: [buildWeb],
      provide: { database: 'sqlite' as const },
    },
  }
}

/** Creates a project whose services use PostgreSQL. */
function withPostgres(name: string, include: readonly string[]) {
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
    // Each worker loads the service once; test files must not affect each other.
    isolate: false,
    // The tests mostly wait: on two cores, two workers would leave a third of the CPU idle.
    maxWorkers: 3,
    // The end of a run lists each test that passed only when repeated, with its first error.
    retry: process.env.CI === undefined ? 0 : 1,
    // The times are long enough for a busy machine, because they only end tests that hang.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 30_000 } },
    projects: [
      withSqlite('unit'),
      withSqlite('api'),
      withSqlite('process'),
      withSqlite('browser'),
      withSqlite('programs'),
      withPostgres('cluster', ['test/cluster/**/*.test.ts']),
      withPostgres('api-postgres', onPostgres),
    ],
  },
})
