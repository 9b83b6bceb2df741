/** The `agents` commands, beside a running server and without one. */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { FULL } from './support/agents.ts'
import { callServer, eventually, makeFolder, runParley, startServer } from './support/process.ts'

// These start processes, which takes its time on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

const GREETER = '# first line\nname: Greeter\nmodel: mock\ninstructions: Greet people.\n'
const MARKDOWN = '---\nname: Wörk Über\n---\n\nHelp people.\n'

/** Runs `parley …` that has nothing to complain about; its standard output. */
async function parley(folder: string, ...words: string[]): Promise<string> {
  const { stdout, ...end } = await runParley(words, { folder })
  expect(end).toEqual({ code: 0, signal: null, stderr: '' })
  return stdout
}
const agents = (folder: string, ...words: string[]) => parley(folder, 'agents', ...words)
const listAgents = async (folder: string, ...words: string[]) =>
  JSON.parse(await agents(folder, 'list', '--json', ...words))

/** What an `agents` command complains about when it fails. */
async function complaint(folder: string, ...words: string[]): Promise<string> {
  const { stderr, ...end } = await runParley(['agents', ...words], { folder })
  expect(end).toEqual({ code: 1, signal: null, stdout: '' })
  expect(stderr).toMatch(/^parley: /)
  expect(stderr).not.toMatch(/^\s+at /m)
  return stderr
}

/** A working folder with a parent key, and definition files in `agents/`. */
async function makeInstallation(files: Record<string, string | Uint8Array> = {}): Promise<string> {
  const folder = await makeFolder()
  await parley(folder, 'keys', 'create', '--name', 'first')
  await mkdir(join(folder, 'agents'))
  await putFiles(folder, files)
  return folder
}

async function putFiles(folder: string, files: Record<string, string | Uint8Array>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, 'agents', name), text)
}

/** Applies the files; the ids by file. */
async function applyFiles(folder: string, path = 'agents'): Promise<Record<string, string>> {
  const { files } = JSON.parse(await agents(folder, 'apply', path, '--yes', '--json'))
  return Object.fromEntries(files.map(({ file, id }: { file: string; id: string }) => [file, id]))
}

describe('help', () => {
  test.each(['', ' list', ' get', ' apply', ' export', ' delete'])(
    'of `agents%s` says how it is used, in lines that fit a terminal',
    async (verb) => {
      const text = await parley(await makeFolder(), ...`agents${verb} --help`.split(' '))
      expect(text).toMatch(new RegExp(`^Usage: parley agents${verb} .*\\n\\n\\w`))
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    },
  )
})

describe('agents list and get', () => {
  test('show what there is, and definitions to the last byte', async () => {
    const untidy = `\uFEFF${GREETER.trimEnd()}`
    const folder = await makeInstallation({ 'a.yaml': untidy, 'b.md': MARKDOWN })
    const ids = await applyFiles(folder)
    const id = ids['agents/a.yaml'] as string
    const table = await agents(folder, 'list')
    expect(table).toMatch(/^ID +NAME +MODEL +CREATED +UPDATED\n/)
    expect(table).toMatch(new RegExp(`^${id} +Greeter +mock +20\\S+Z +20\\S+Z$`, 'm'))
    expect(table).toMatch(new RegExp(`^${ids['agents/b.md']} +Wörk Über +- `, 'm'))
    expect(table).not.toContain('agnt_key-')
    expect(await agents(folder, 'get', id)).toBe(untidy)
    const markdown = '---\n# first line\nname: Greeter\nmodel: mock\n---\n\nGreet people.'
    expect(await agents(folder, 'get', id, '--markdown')).toBe(markdown)
    const times = { created_at: expect.any(Number), updated_at: expect.any(Number) }
    const summary = { id, name: 'Greeter', model: 'mock', version: 1, ...times }
    expect(await listAgents(folder)).toContainEqual(summary)
    const whole = { ...summary, format: 'yaml', yaml: untidy, markdown }
    expect(JSON.parse(await agents(folder, 'get', id, '--json'))).toEqual(whole)
  })

  test('say so when there is no such agent, and when there is no database', async () => {
    expect(await complaint(await makeInstallation(), 'get', 'agent-x')).toContain('Agent not found.')
    expect(await complaint(await makeFolder(), 'list')).toContain('no Parley database')
  })
})

describe('the parent key', () => {
  test('has to be named when there are several, and each has its own agents', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER })
    await applyFiles(folder)
    const second = (await parley(folder, 'keys', 'create', '--name', 'second')).trim()
    const id = second.slice(4, 16)
    const refusal = await complaint(folder, 'list')
    expect(refusal).toContain('choose one with --key')
    expect(refusal).toContain(`${id} (second)`)
    expect(refusal).toContain(' (first)')
    for (const name of [id, `svc_${id}`, second]) expect(await listAgents(folder, '--key', name)).toEqual([])
    await parley(folder, 'keys', 'revoke', id)
    expect(await listAgents(folder)).toHaveLength(1)
    expect(await complaint(folder, 'list', '--key', id)).toContain(`no parent key '${id}' that could be used`)
    const wrong = `${second}x`
    expect(await complaint(folder, 'list', '--key', wrong)).not.toContain(wrong)
  })

  test('that is missing is told how to be made', async () => {
    const folder = await makeFolder()
    const key = (await parley(folder, 'keys', 'create', '--name', 'only')).trim()
    await parley(folder, 'keys', 'revoke', key)
    expect(await complaint(folder, 'list')).toContain('parley keys create')
  })
})

describe('agents apply', () => {
  test('shows what it would do and changes nothing without --yes', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'notes.txt': 'no definition' })
    const plan = await agents(folder, 'apply', 'agents')
    expect(plan).toBe('+ create  agents/a.yaml  "Greeter"\nNothing was changed; add --yes to do it.\n')
    expect(await listAgents(folder)).toEqual([])
    const json = JSON.parse(await agents(folder, 'apply', 'agents', '--json'))
    const file = { file: 'agents/a.yaml', action: 'create', id: null, name: 'Greeter' }
    expect(json).toEqual({ applied: false, files: [file], untouched: [] })
  })

  test('creates, updates by the name or the id in the file’s name, and leaves the rest alone', async () => {
    const folder = await makeInstallation({ 'a.yaml': GREETER, 'b.md': MARKDOWN, 'c.yaml': FULL })
    const ids = await applyFiles(folder)
    const [a, b, c] = ['a.yaml', 'b.md', 'c.yaml'].map((name) => ids[`agents/${name}`])
    await mkdir(join(folder, 'next'))
    const renamed = GREETER.replace('Greeter', 'Host').replace('Greet people.', 'Welcome \u001b[31mpeople.')
    await writeFile(join(folder, 'next', `x.${a}.yaml`), renamed.replace('\u001b', '\\e'))
    await writeFile(join(folder, 'next', 'y.md'), MARKDOWN)
    const plan = await agents(folder, 'apply', 'next', '--yes')
    expect(plan.split('\n')).toEqual([
      `~ update  next/x.${a}.yaml  "Host" (${a})`,
      '    - name: Greeter',
      '    + name: Host',
      '    - instructions: Greet people.',
      '    + instructions: Welcome \\e[31mpeople.',
      `= same    next/y.md  "Wörk Über" (${b})`,
      `  untouched, without a file: "Guide" (${c})`,
      `updated ${a}`,
      '',
    ].sort((left, right) => order(left) - order(right)))
    expect((await listAgents(folder)).map(({ id, name, version }: Row) => [id, name, version])).toEqual([
      [c, 'Guide', 1],
      [b, 'Wörk Über', 1],
      [a, 'Host', 2],
    ])
  })
})
