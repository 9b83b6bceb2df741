/** Ends a test run with a line that people and programs can read: `N passed, N failed`. */
import type { Reporter, SerializedError, TestModule, TestRunEndReason } from 'vitest/node'

/** The number of tests by result; `failed` includes errors outside of tests. */
export interface TestCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Writes the line when the process exits, so that it is the last one; used together with vitest's own reporter. */
export class CountReporter implements Reporter {
  /** The result until a run has ended; an unfinished run counts as failed. */
  #counts: TestCounts = { passed: 0, failed: 1, skipped: 0 }

  #flaky: readonly string[] = []

  onInit(): void {
    process.once('exit', () => {
      for (const name of this.#flaky) process.stdout.write(`passed only when repeated: ${name}\n`)
      process.stdout.write(renderCounts(this.#counts))
    })
  }

  onTestRunEnd(
    modules: readonly TestModule[],
    unhandledErrors: readonly SerializedError[],
    reason: TestRunEndReason,
  ): void {
    this.#counts = countTests(modules, unhandledErrors.length, reason)
    this.#flaky = modules.flatMap((module) => listFlaky(module))
  }
}

/**
 * Counts each test once, and counts broken files, broken hooks and unhandled errors as failures. A run that vitest
 * does not call passed has at least one failure.
 */
export function countTests(
  modules: readonly TestModule[],
  unhandledErrorCount: number,
  reason: TestRunEndReason,
): TestCounts {
  const states = modules.flatMap((module) =>
    [...module.children.allTests()].map((test) => test.result().state),
  )
  const suites = modules.flatMap((module) => [module, ...module.children.allSuites()])
  const brokenCount = suites.filter((suite) => suite.errors().length > 0).length
  const failed = states.filter((state) => state === 'failed').length + brokenCount + unhandledErrorCount
  return {
    passed: states.filter((state) => state === 'passed').length,
    failed: reason === 'passed' ? failed : Math.max(failed, 1),
    skipped: states.filter((state) => state === 'skipped' || state === 'pending').length,
  }
}

/** Lists the file and full name of each test that passed only when repeated. */
function listFlaky(module: TestModule): string[] {
  return [...module.children.allTests()]
    .filter((test) => test.diagnostic()?.flaky === true)
    .map((test) => `${module.relativeModuleId} > ${test.fullName}`)
}

/** Renders the line: `12 passed, 0 failed`, with `, 3 skipped` if there are any. */
function renderCounts({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`
}
