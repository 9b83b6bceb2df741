/** Tests the `providers` commands and the providers in `parley doctor`, with and without a running server. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { AuditRow } from '../../src/identity/audit.ts'
import { runCommandInProcess } from '../support/command.ts'
import { openSqliteFile } from '../support/database.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { shareUpstream, type Upstream } from '../support/start-upstream.ts'

vi.setConfig({ testTimeout: 60_000 })

const API_KEY = 'sk-test-0123456789-abcd'

async function shareProvider(): Promise<Upstream> {
  const upstream = await shareUpstream()
  await upstream.script('/v1/models', '{{up:body {"object":"list","data":[{"id":"large"}]}}}')
  return upstream
}

test('a running server uses a provider that a command has added until another command deletes it', async () => {
  const upstream = await shareProvider()
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const listModels = async () => {
    const { data } = (await callServer(server.url, 'GET', '/v1/models', server.key)).body
    return data.map(({ id }: { id: string }) => id)
  }
  const parley = (...words: string[]) => runCommandInProcess(['providers', ...words], { folder })
  await writeFile(join(folder, 'key'), `${API_KEY}\n`)
  const added = await parley(
    'add',
    'near',
    '--url',
    upstream.url,
    '--key-file',
    join(folder, 'key'),
    '--json',
  )
  expect(JSON.parse(added.stdout)).toMatchObject({ name: 'near', source: 'console', has_key: true })
  await vi.waitFor(async () => expect(await listModels()).toContain('large'), { timeout: 30_000 })
  const requests = await upstream.listRequests()
  expect(requests.at(-1)?.headers.authorization).toBe(`Bearer ${API_KEY}`)
  const tested = await parley('test', 'near')
  expect([tested.code, tested.stdout]).toEqual([
    0,
    expect.stringMatching(/^near lists 1 models \(\d+ ms\)\n {2}large\n$/),
  ])
  const listed = await parley('list')
  expect(listed.stdout).toMatch(
    /NAME +SOURCE +KIND +BASE URL +KEY +CREATED\nmock +environment .*\nnear +console +gateway +http/,
  )
  const unconfirmed = await parley('remove', 'near')
  expect([unconfirmed.code, unconfirmed.stderr]).toEqual([1, expect.stringContaining('add --yes to confirm')])
  expect((await parley('remove', 'near', '--yes')).stdout).toBe('deleted near\n')
  await vi.waitFor(async () => expect(await listModels()).not.toContain('large'), { timeout: 30_000 })
  const rows = openSqliteFile(join(folder, 'data'))
    .prepare(`select * from audit_events where target_kind = 'provider' order by id`)
    .all() as AuditRow[]
  expect(rows.map(({ action, actor_kind }) => [action, actor_kind])).toEqual([
    ['provider.create', 'command'],
    ['provider.test', 'command'],
    ['provider.delete', 'command'],
  ])
  expect(JSON.stringify(rows)).not.toContain(API_KEY)
})

test('doctor checks stored providers, and `providers test` exits with code 1 if the test fails', async () => {
  const upstream = await shareProvider()
  const folder = await makeFolder()
  await (await startServer({ folder })).stop()
  const parley = (...words: string[]) => runCommandInProcess(words, { folder })
  await parley('providers', 'add', 'near', '--url', upstream.url)
  await parley('providers', 'add', 'gone', '--preset', 'ollama', '--url', 'http://127.0.0.1:9')
  const { code, stdout } = await parley('doctor', '--json')
  const { checks } = JSON.parse(stdout)
  expect(code).toBe(1)
  expect(checks).toEqual(
    expect.arrayContaining([
      { check: 'backend near', state: 'ok', message: `${upstream.url} lists 1 models` },
      expect.objectContaining({
        check: 'backend gone',
        state: 'fail',
        message: expect.stringContaining('127.0.0.1:9'),
      }),
    ]),
  )
  const failed = await parley('providers', 'test', 'gone')
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('No server is listening')])
})

test.each([
  [['add', 'near'], 'Set --url to the base URL'],
  [['add', 'near', '--preset', 'nobody'], '--preset must be one of openai, anthropic, google'],
  [['add', 'mock', '--preset', 'ollama'], "already has a provider 'mock'"],
  [['remove', 'near', '--yes'], "There is no provider 'near'."],
  [['test', 'mock'], 'runs in this server'],
])('`providers` with %j fails, and the error explains why', async (words, reason) => {
  const folder = await makeFolder()
  await (await startServer({ folder })).stop()
  const { code, stderr } = await runCommandInProcess(['providers', ...words], { folder })
  expect([code, stderr]).toEqual([1, expect.stringContaining(reason)])
})
