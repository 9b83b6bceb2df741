/** How the tests run: one project per tier, and a tier is a folder below test/. */
import { defineConfig } from 'vitest/config'
import { onPostgres } from './test/support/databases.ts'
import { CountReporter } from './test/support/reporter.ts'
import { SlowFirst } from './test/support/slow-first.ts'

const buildWeb = 'test/support/build-web.ts'
const startPostgres = 'test/support/start-postgres.ts'

/** Tiers whose tests wait for other processes repeat a failed test once on CI; the report lists each that passed only then. */
const retry = process.env.CI === undefined ? 0 : 1

/** A project whose services keep their rows in SQLite unless a test says otherwise. */
function withSqlite(name: string, options: { readonly retry?: number } = {}) {
  return {
    extends: true as const,
    test: {
      ...options,
      name,
      include: [`test/${name}/**/*.test.ts`],
      globalSetup: [buildWeb],
      provide: { database: 'sqlite' as const },
    },
  }
}

/** A project whose services keep their rows in PostgreSQL. */
function withPostgres(name: string, include: readonly string[]) {
  return {
    extends: true as const,
    test: {
      name,
      retry,
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
      withSqlite('unit'),
      withSqlite('api'),
      withSqlite('process', { retry }),
      withSqlite('browser', { retry }),
      withSqlite('programs', { retry }),
      withPostgres('cluster', ['test/cluster/**/*.test.ts']),
      withPostgres('api-postgres', onPostgres),
    ],
  },
})
