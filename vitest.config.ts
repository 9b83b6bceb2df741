/** How the tests run: every `.test.ts` file below test/, by three processes, the slow ones first. */
import { defineConfig } from 'vitest/config'
import { onBothDatabases, onPostgres } from './test/support/databases.ts'
import { CountReporter } from './test/support/reporter.ts'
import { SlowFirst } from './test/support/slow-first.ts'

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from there.
export default defineConfig({
  test: {
    setupFiles: ['test/support/setup.ts'],
    reporters: ['default', new CountReporter()],
    sequence: { sequencer: SlowFirst },
    pool: 'forks',
    // The same services again and again: to load them once a worker saves minutes. No file changes what others see.
    isolate: false,
    // They wait more than they compute: on two cores two of them leave a third of the processor idle.
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // A condition is waited for, however busy the machine is.
    expect: { poll: { timeout: 15_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'sqlite',
          include: ['test/**/*.test.ts'],
          exclude: [...onPostgres],
          globalSetup: ['test/support/build-web.ts'],
          provide: { database: 'sqlite' },
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          include: [...onPostgres, ...onBothDatabases],
          globalSetup: ['test/support/build-web.ts', 'test/support/start-postgres.ts'],
          provide: { database: 'postgres' },
        },
      },
    ],
  },
})
