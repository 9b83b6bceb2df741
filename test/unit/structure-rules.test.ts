/** Tests that `scripts/check-structure.ts` finds violations of each of its rules. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'

const script = fileURLToPath(new URL('../../scripts/check-structure.ts', import.meta.url))

/** Runs the script on a source tree with these files and returns the lines that it prints. */
function check(tree: Readonly<Record<string, string>>): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'parley-structure-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  const { status, stderr } = spawnSync(process.execPath, [script, folder], { encoding: 'utf8' })
  const lines = stderr.split('\n').filter((line) => line !== '')
  expect(status).toBe(lines.length > 0 ? 1 : 0)
  return lines
}

const manyFiles = (folder: string, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`${folder}file-${index}.ts`, '']))

test('the structure check accepts imports from lower layers and from the same module', () => {
  const tree = {
    'lib/ids.ts': '',
    'chat/chat.ts': "import '../lib/ids.ts'\nimport './engine/loop.ts'",
    'chat/engine/loop.ts': '',
    'providers/create.ts': "await import('../../packages/in-process/src/index.ts')",
  }
  expect(check(tree)).toEqual([])
})

const broken: [rule: string, tree: Record<string, string>, line: string][] = [
  [
    'an import from a higher layer',
    { 'lib/ids.ts': "import type { Chat } from '../chat/chat.ts'", 'chat/chat.ts': '' },
    'src/lib/ids.ts: imports chat/chat.ts from a higher layer',
  ],
  ['a folder that is not a layer', { 'misc/one.ts': '' }, 'src/misc: is not in the list of layers'],
  [
    "an import of another module's store",
    { 'chat/chat.ts': "import '../agents/store.ts'", 'agents/store.ts': '' },
    'src/chat/chat.ts: imports agents/store.ts, which is private to its module',
  ],
  [
    "an import from another module's subfolder",
    { 'chat/chat.ts': "await import('../tools/mcp/http.ts')", 'tools/mcp/http.ts': '' },
    'src/chat/chat.ts: imports tools/mcp/http.ts, which is private to its module',
  ],
  [
    'a cycle of type imports',
    { 'chat/a.ts': "import type { B } from './b.ts'", 'chat/b.ts': "import type { A } from './a.ts'" },
    'import cycle: chat/a.ts -> chat/b.ts -> chat/a.ts',
  ],
  ['too many files in src', manyFiles('', 6), 'src/: has 6 files, at most 5'],
  ['too many files in a folder', manyFiles('chat/', 17), 'src/chat: has 17 files, at most 16'],
  [
    'a file that is too long',
    { 'chat/long.ts': 'const a = 1\n'.repeat(401) },
    'src/chat/long.ts: has 401 lines, at most 400',
  ],
  [
    'a package imported outside its folder',
    { 'chat/chat.ts': "import pg from 'pg'" },
    'src/chat/chat.ts: imports pg, which belongs in db/',
  ],
  [
    'reading the clock outside lib/clock.ts',
    { 'chat/chat.ts': 'export const now = () => Date.now()' },
    'src/chat/chat.ts: reads the clock; use src/lib/clock.ts instead',
  ],
  [
    'loading an upload parser outside the worker',
    { 'conversion/conversion.ts': "import { x } from './pictures.ts'", 'conversion/pictures.ts': '' },
    'src/conversion/conversion.ts: loads conversion/pictures.ts outside the confined worker',
  ],
  [
    'loading the optional package outside providers/create.ts',
    { 'chat/chat.ts': "await import('../../packages/in-process/src/index.ts')" },
    'src/chat/chat.ts: imports ../packages/in-process/src/index.ts, which only src/providers/create.ts may do, with a dynamic import',
  ],
  [
    'loading the optional package statically',
    { 'providers/create.ts': "import { x } from '../../packages/in-process/src/index.ts'" },
    'src/providers/create.ts: imports ../packages/in-process/src/index.ts, which only src/providers/create.ts may do, with a dynamic import',
  ],
  [
    "a query on another module's table",
    { 'chat/chat.ts': "db.selectFrom('agents')" },
    'src/chat/chat.ts: uses the table agents, which src/agents owns',
  ],
]

test.each(broken)('the structure check rejects %s', (_rule, tree, line) => {
  expect(check(tree)).toEqual([line])
})
