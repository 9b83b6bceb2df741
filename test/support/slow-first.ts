/** The order of the test files: those that take longest first, so that no worker is left with one of them at the end. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The start of their names; the first takes longest. */
const slow = [
  ...['replicas-killed', 'console-ui-views', 'cli-agents', 'uploads-s3-processes', 'doctor', 'console-ui-'],
  ...['uploads-recovery', 'cli-', 'serve', 'widget-', 'uploads-s3', 'jobs-', 'first-start', 'shutdown'],
  ...['mcp-', 'artifacts-page-browser', 'local-model-', 'setup', 's3-', 'conversion-'],
]

export class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files
      .map((file) => ({ file, rank: rankOf(file) }))
      .sort((one, other) => one.rank - other.rank)
      .map(({ file }) => file)
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const name = moduleId.slice(moduleId.lastIndexOf('/') + 1)
  const rank = slow.findIndex((start) => name.startsWith(start))
  return rank === -1 ? slow.length : rank
}
