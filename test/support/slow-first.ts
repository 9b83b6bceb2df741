/** Orders test files with the slowest first, so that workers finish at about the same time. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Path prefixes relative to test/, slowest first. */
const slow = [
  ...[
    'cluster/replicas-killed',
    'browser/console-views',
    'process/cli-agents',
    'process/uploads-s3',
    'process/doctor',
  ],
  ...[
    'api/storage/s3-',
    'api/artifacts/uploads-s3',
    'api/http/routes',
    'browser/',
    'programs/',
    'cluster/',
    'process/',
  ],
  ...[
    'api/http/never-500',
    'api/backup',
    'api/telemetry/traces',
    'api/chat',
    'api/artifacts',
    'unit/definition.property',
  ],
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
  const name = moduleId.slice(moduleId.lastIndexOf('/test/') + '/test/'.length)
  const rank = slow.findIndex((start) => name.startsWith(start))
  return rank === -1 ? slow.length : rank
}
