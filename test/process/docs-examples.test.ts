/** Tests that the code blocks in the README and in docs/ run as printed. */
import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { checkCodeBlock, createStage, listCodeBlocks, listUncheckedBlocks } from '../support/docs-examples.ts'
import { repository } from '../support/process.ts'

const files = ['README.md', 'CONTRIBUTING.md', ...globSync('docs/**/*.md', { cwd: repository }).sort()]
const pages = files
  .map((page) => ({ page, blocks: listCodeBlocks(page) }))
  .filter(({ blocks }) => blocks.length > 0)

test.each(pages)(
  'the code blocks of $page run as printed',
  { timeout: 120_000 },
  async ({ page, blocks }) => {
    const stage = await createStage()
    const failures: string[] = []
    for (const block of blocks) {
      await checkCodeBlock(block, stage).catch((error: Error & { stdout?: string }) =>
        failures.push(`${page}:${block.line} ${error.message}\n${error.stdout ?? ''}`),
      )
    }
    expect(failures).toEqual([])
  },
)

test('every code block of the documentation runs in a test or is marked with no-run', () => {
  expect(files.flatMap(listUncheckedBlocks)).toEqual([])
})
