/** Ends a test run with one line that people and machines read alike: `N passed, N failed`. */
import type { Reporter, SerializedError, TestModule, TestRunEndReason } from 'vitest/node'

/** How many tests ended how; `failed` also counts what went wrong outside a test. */
export interface TestCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Writes the line when the process ends, so that nothing comes after it. Goes beside vitest's own reporter. */
export class CountReporter implements Reporter {
  /** Stands until a run has ended: a run that never gets there has not passed. */
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
 * Counts each test once, and as failures also files that do not load, hooks of suites that throw, and unhandled errors. A
 * run vitest does not call passed has at least one failure.
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

/** The file and full name of each test that failed at first and passed when it was repeated. */
function listFlaky(module: TestModule): string[] {
  return [...module.children.allTests()]
    .filter((test) => test.diagnostic()?.flaky === true)
    .map((test) => `${module.relativeModuleId} > ${test.fullName}`)
}

/** The line: `12 passed, 0 failed`, and `, 3 skipped` when some were. */
function renderCounts({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`
}
