/**
 * Prints failed and flaky tests at the end of a run, and in the last line the counts: `N passed, N failed`.
 */
import type { Reporter, SerializedError, TestModule, TestRunEndReason } from 'vitest/node'

/** The number of tests by result; `failed` includes errors outside tests. */
export interface TestCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** Prints when the process exits, because Vitest's own reporter prints until then. */
export class CountReporter implements Reporter {
  /** The counts if the run does not end; an unfinished run has failed. */
  #counts: TestCounts = { passed: 0, failed: 1, skipped: 0 }

  #failed: readonly string[] = []

  #flaky: readonly string[] = []

  onInit(): void {
    process.once('exit', () => {
      for (const name of this.#failed) process.stdout.write(`failed: ${name}\n`)
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
    this.#failed = [
      ...modules.flatMap((module) => listFailed(module)),
      ...unhandledErrors.map((error) => `outside of tests: ${shorten(error.message)}`),
    ]
    this.#flaky = modules.flatMap((module) => listFlaky(module))
  }
}

/** Counts tests by result. Files that cannot be loaded, failed hooks and unhandled errors count as failed. */
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

/** Lists the files, groups and tests that failed, each with the beginning of its first error. */
function listFailed(module: TestModule): string[] {
  const suites = [module, ...module.children.allSuites()].map((suite) => ({
    name: suite.type === 'module' ? 'the file' : suite.fullName,
    errors: suite.errors(),
  }))
  const tests = [...module.children.allTests('failed')].map((test) => ({
    name: test.fullName,
    errors: test.result().errors ?? [],
  }))
  return [...suites, ...tests]
    .filter(({ errors }) => errors.length > 0)
    .map(({ name, errors }) => `${module.relativeModuleId} > ${name}: ${shorten(errors[0]?.message)}`)
}

/** Puts a message on one line and cuts it after 300 characters, which include the seed of a property test. */
function shorten(message = ''): string {
  return message.replace(/\s+/g, ' ').slice(0, 300)
}

/** Lists the tests that passed only after a retry, each with the beginning of its first error. */
function listFlaky(module: TestModule): string[] {
  return [...module.children.allTests()]
    .filter((test) => test.diagnostic()?.flaky === true)
    .map(
      (test) =>
        `${module.relativeModuleId} > ${test.fullName}: ${shorten(test.result().errors?.[0]?.message)}`,
    )
}

/** Renders the counts, such as `12 passed, 0 failed, 3 skipped`; the last part is omitted if it is 0. */
function renderCounts({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}\n`
}
