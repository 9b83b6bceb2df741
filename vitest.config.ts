/** How the tests run: every `.test.ts` file below test/, three at a time, each in a process of its own. */
import { defineConfig } from 'vitest/config'
import { CountReporter } from './test/support/reporter.ts'

// biome-ignore lint/style/noDefaultExport: vitest reads its configuration from there.
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build-web.ts'],
    setupFiles: ['test/support/setup.ts'],
    reporters: ['default', new CountReporter()],
    pool: 'forks',
    // They wait more than they compute: on two cores two of them leave a third of the processor idle.
    maxWorkers: 3,
    testTimeout: 20_000,
    hookTimeout: 30_000,
    // A condition is waited for, however busy the machine is.
    expect: { poll: { timeout: 15_000 } },
  },
})
