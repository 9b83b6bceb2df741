/** Tests the `prices` commands and the prices in `parley doctor`, with and without a running server. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { AuditRow } from '../../src/identity/audit.ts'
import { openApp } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { openSqliteFile } from '../support/database.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import { sendChat } from '../support/usage.ts'

vi.setConfig({ testTimeout: 60_000 })

const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 }

/** Returns settings with a provider that lists the models `tuned` and `spare`. */
async function makeSettings(folder: string, prices: object): Promise<Record<string, string>> {
  const upstream = await shareUpstream()
  await upstream.clear()
  const data = ['tuned', 'spare'].map((id) => ({ id, object: 'model' }))
  await upstream.script('/v1/models', `{{up:body ${JSON.stringify({ object: 'list', data })}}}`)
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }
  const answer = { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage }
  await upstream.script('/v1/chat/completions', `{{up:body ${JSON.stringify(answer)}}}`)
  const path = join(folder, 'parley.yaml')
  await writeFile(path, JSON.stringify({ providers: { far: { url: upstream.url } }, prices }))
  return { PARLEY_CONFIG: path, PARLEY_DATA_DIR: join(folder, 'data') }
}

const cheap = [{ per_million: { input: 1, output: 2 } }]

test('a running server uses the prices that a command imports', async () => {
  const folder = await makeFolder()
  const env = await makeSettings(folder, {})
  const server = await startServer({ folder, env })
  const parley = (...words: string[]) => runCommandInProcess(['prices', ...words], { folder, env })
  expect((await parley('show', 'far/tuned')).stdout).toBe('far/tuned has no price\n')
  const file = join(folder, 'prices.yaml')
  await writeFile(file, 'prices:\n  far/tuned:\n    - per_million: { input: 0.25, output: 2 }\n')
  const imported = await parley('import', file, '--json')
  expect(JSON.parse(imported.stdout)).toEqual({ imported: ['far/tuned'] })
  const read = async () => (await callServer(server.url, 'GET', '/v1/prices?model=tuned', server.key)).body
  await vi.waitFor(async () => expect(await read()).toMatchObject({ source: 'override' }), {
    timeout: 30_000,
  })
  const shown = JSON.parse((await parley('show', 'far/tuned', '--json')).stdout)
  const { price_id, entry, date } = await read()
  expect(shown).toEqual({
    ...{ provider: 'far', model: 'tuned', priced: true, source: 'override' },
    ...{ date, entry, price_id },
  })
  const listed = await parley('list')
  expect(listed.stdout).toMatch(
    /MODEL +INPUT +OUTPUT +SOURCE +DATE +UNPRICED CALLS\nfar\/spare +- +- +none +- +-\nfar\/tuned +0\.25 +2 +override +20\d\d-\d\d-\d\d +-\n/,
  )
  const rows = openSqliteFile(join(folder, 'data'))
    .prepare(`select * from audit_events where target_kind = 'price'`)
    .all() as AuditRow[]
  expect(rows.map(({ action, actor_kind, target_id }) => [action, actor_kind, target_id])).toEqual([
    ['price.set', 'command', 'far/tuned'],
  ])
})

test('`prices import` reports each error with its field and line, and does not set any price', async () => {
  const folder = await makeFolder()
  const env = await makeSettings(folder, {})
  await (await startServer({ folder, env })).stop()
  const parley = (...words: string[]) => runCommandInProcess(['prices', ...words], { folder, env })
  const file = join(folder, 'prices.yaml')
  await writeFile(
    file,
    'far/good: [{ per_million: { input: 1 } }]\nfar/bad: [{ per_million: { input: -1 } }]\ntuned: []\n',
  )
  const { code, stderr } = await parley('import', file)
  expect(code).toBe(1)
  expect(stderr).toContain('["far/bad"][0].per_million.input: must be a number or a decimal string')
  expect(stderr).toContain('(line 2, column 1)')
  expect(stderr).toContain('tuned: must be a provider and a model, such as far/my-model (line 3, column 1)')
  expect((await parley('show', 'far/good')).stdout).toBe('far/good has no price\n')
  const missing = await parley('import', join(folder, 'nothing.yaml'))
  expect([missing.code, missing.stderr]).toEqual([
    1,
    expect.stringContaining('cannot read the file (ENOENT)'),
  ])
  const unqualified = await parley('show', 'tuned')
  expect([unqualified.code, unqualified.stderr]).toEqual([
    1,
    expect.stringContaining('must contain its provider'),
  ])
})

test('`prices check` names unpriced models, and fails if a budget rejects one of them', async () => {
  const folder = await makeFolder()
  const env = await makeSettings(folder, { 'far/tuned': cheap })
  const app = await openApp(env)
  await sendChat(app, 'hello', { model: 'far/spare' })
  const { agent_id: id } = await app.createAgent('name: Guide\ninstructions: Help.\nmodel: spare\n')
  const body = { scope: { type: 'agent', id }, unit: 'usd', period: 'day', limit: '5', mode: 'observe' }
  const { body: budget } = await app.call('POST', '/v1/budgets', { body })
  await app.close()
  const parley = async (...words: string[]) => {
    const { code, stdout } = await runCommandInProcess(['prices', ...words], { folder, env })
    return { code, stdout, result: words.includes('--json') ? JSON.parse(stdout) : undefined }
  }
  const spare = {
    ...{ provider: 'far', model: 'spare', unpriced_requests: 1 },
    named_by: ['provider', id],
  }
  const observed = await parley('check', '--json')
  expect([observed.code, observed.result]).toEqual([
    0,
    { ok: true, unpriced: [{ ...spare, refused_by: [] }] },
  ])

  const again = await openApp({ ...env, PARLEY_PARENT_KEY: app.key })
  await again.call('PATCH', `/v1/budgets/${budget.id}`, { body: { mode: 'enforce' } })
  await again.close()
  const refused = await parley('check', '--json')
  expect([refused.code, refused.result]).toEqual([
    1,
    { ok: false, unpriced: [{ ...spare, refused_by: [budget.id] }] },
  ])
  expect((await parley('check')).stdout).toMatch(
    /MODEL WITHOUT PRICE.*\nfar\/spare +provider agent-\S+ +1 +bud_/,
  )

  await writeFile(join(folder, 'prices.json'), JSON.stringify({ 'far/spare': cheap }))
  await parley('import', join(folder, 'prices.json'))
  const priced = await parley('check')
  expect([priced.code, priced.stdout]).toEqual([0, 'every model has a price\n'])
})

test("`prices check` reports no rejection by an agent budget for models that the agent's policy forbids", async () => {
  const folder = await makeFolder()
  const env = await makeSettings(folder, { 'far/tuned': cheap })
  const app = await openApp(env)
  const { agent_id: id } = await app.createAgent()
  const policy = { allowed_models: [{ provider: 'far', model: 'tuned' }] }
  const { status } = await app.call('PUT', `/v1/agents/${id}/model-policy`, {
    body: { default_model: null, fallback_models: [], ...policy },
  })
  expect(status).toBe(200)
  await app.call('POST', '/v1/budgets', {
    body: { scope: { type: 'agent', id }, unit: 'usd', period: 'day', limit: '5' },
  })
  await app.close()
  const { code, stdout } = await runCommandInProcess(['prices', 'check', '--json'], { folder, env })
  expect([code, JSON.parse(stdout).unpriced]).toEqual([
    0,
    [expect.objectContaining({ model: 'spare', refused_by: [] })],
  ])
})

test('doctor lists called models without a price, and prices that are more than 180 days old', async () => {
  const folder = await makeFolder()
  const old = [{ since: '2020-01-02', per_million: { input: 1, output: 2 } }]
  const env = await makeSettings(folder, { 'far/tuned': old })
  const app = await openApp(env)
  for (const model of ['far/spare', 'far/tuned']) await sendChat(app, 'hello', { model })
  await app.close()
  const readPrices = async () => {
    const { stdout } = await runCommandInProcess(['doctor', '--json'], { folder, env: { PORT: '0', ...env } })
    const { checks }: { checks: { check: string; state: string; message: string }[] } = JSON.parse(stdout)
    return checks.flatMap(({ check, state, message }) => (check === 'prices' ? [`${state}: ${message}`] : []))
  }
  expect(await readPrices()).toEqual([
    expect.stringMatching(/^warn: these models have no price, .*: far\/spare; set prices with PARLEY_CONFIG/),
    expect.stringMatching(/^warn: these prices are older than 180 days: far\/tuned \(config, 2020-01-02\);/),
  ])
  await writeFile(join(folder, 'prices.json'), JSON.stringify({ 'far/spare': cheap, 'far/tuned': cheap }))
  await runCommandInProcess(['prices', 'import', join(folder, 'prices.json')], { folder, env })
  expect(await readPrices()).toEqual(['ok: all models that were called in the last 30 days have a price'])
})
