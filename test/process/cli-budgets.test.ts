/** Tests the `budgets` commands with a running server. */
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { openApp } from '../support/app.ts'
import { runCommandInProcess } from '../support/command.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'

// Starting processes is slow on a busy machine.
vi.setConfig({ testTimeout: 60_000 })

async function start() {
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const parley = (...words: string[]) => runCommandInProcess(['budgets', ...words], { folder })
  /** Runs a command that must succeed, and returns its JSON. */
  const read = async (...words: string[]) => {
    const { code, stdout, stderr } = await parley(...words, '--json')
    expect([code, stderr]).toEqual([0, ''])
    return JSON.parse(stdout)
  }
  const call = (method: string, path: string, body?: object) =>
    callServer(server.url, method, `/v1/budgets${path}`, server.key, body)
  return { parley, read, call, server }
}

test('`budgets` sets, lists, raises, corrects and deletes the budgets of a key, which its owner cannot change', async () => {
  const { parley, read, call } = await start()
  const set = ['set', '--period', 'month', '--unit', 'usd', '--limit', '25']
  const created = await read(...set, '--warn-at', '90,50')
  expect(created).toMatchObject({
    ...{
      unit: 'usd',
      period: 'month',
      limit: '25',
      warn_at: [50, 90],
      mode: 'enforce',
      managed_by: 'operator',
    },
  })
  const { id } = created
  expect((await call('GET', `/${id}`)).body).toEqual(created)
  for (const [method, path, body] of [
    ['PATCH', '', { limit: '100' }],
    ['POST', '/grants', { amount: '1', reason: 'more' }],
    ['POST', '/adjustments', { amount: '-1', reason: 'less' }],
    ['DELETE', '', undefined],
  ] as const)
    expect((await call(method, `/${id}${path}`, body)).status).toBe(403)

  const changed = await read(
    'set',
    '--period',
    'month',
    '--unit',
    'usd',
    '--limit',
    '30',
    '--mode',
    'observe',
  )
  expect(changed).toMatchObject({ id, limit: '30', warn_at: [50, 90], mode: 'observe' })
  const grant = await read('grant', id, '2.5', '--reason', 'launch week')
  expect(grant).toMatchObject({ object: 'budget.grant', budget_id: id, amount: '2.5', reason: 'launch week' })
  await read('adjust', id, '4', '--reason', 'billed elsewhere')
  expect(await read('adjust', id, '-0.37', '--reason', 'refund')).toMatchObject({ amount: '-0.37' })
  expect((await call('GET', `/${id}`)).body).toMatchObject({ granted: '2.5', booked: '3.63' })

  const { stdout } = await parley('list')
  expect(stdout).toMatch(
    new RegExp(
      `^ID +SCOPE +AGENT +UNIT .*MANAGED BY\n${id} +key +- +usd +month +30 +3.63 +0 +28.87 +observe +operator\n$`,
    ),
  )
  expect(await read('list')).toMatchObject([{ id, booked: '3.63' }])
  const unconfirmed = await parley('delete', id)
  expect([unconfirmed.code, unconfirmed.stderr]).toEqual([1, expect.stringContaining('add --yes to confirm')])
  expect((await parley('delete', id, '--yes')).stdout).toBe(`deleted ${id}\n`)
  expect(await read('list')).toEqual([])
})

test('`budgets set` creates budgets of an agent and of each of its visitors, which belong to the owner of the key', async () => {
  const { read, call, server } = await start()
  const yaml = 'name: Guide\ninstructions: Be brief.\n'
  const agent = await callServer(server.url, 'POST', '/v1/agents', server.key, { yaml })
  expect(agent.status).toBe(201)
  const { agent_id: agentId } = agent.body
  const set = ['set', '--agent', agentId, '--period', 'day', '--limit', '5000']
  const ofAgent = await read(...set)
  expect(ofAgent).toMatchObject({
    scope: { type: 'agent', id: agentId },
    unit: 'tokens',
    managed_by: 'tenant',
  })
  const ofVisitors = await read(...set, '--each', 'visitor')
  expect(ofVisitors).toMatchObject({ scope: { type: 'visitor', id: agentId }, booked: null })
  expect((await call('PATCH', `/${ofAgent.id}`, { limit: 1 })).status).toBe(200)
})

test('`budgets meters` lists and clears models whose answers are measured in bytes', async () => {
  const folder = await makeFolder()
  const app = await openApp({ PARLEY_DATA_DIR: join(folder, 'data') })
  const until = Math.floor(Date.now() / 1000) + 86_400
  const meter = { provider: 'far', model: 'meta/large', metering: 'bytes', reason: 'output', until } as const
  app.service.deps.meters.set(meter)
  await app.service.deps.meters.settled()
  await app.close()
  const parley = (...words: string[]) => runCommandInProcess(words, { folder, env: { PORT: '0' } })
  const time = new Date(until * 1000).toISOString().replace('.000', '')
  const { stdout } = await parley('budgets', 'meters', 'list')
  expect(stdout).toMatch(new RegExp(`^MODEL +EXCEEDED +UNTIL\\nfar/meta/large +output +${time}\\n$`))
  expect(JSON.parse((await parley('budgets', 'meters', 'list', '--json')).stdout)).toEqual([
    { object: 'model_meter', ...meter },
  ])
  const { checks } = JSON.parse((await parley('doctor', '--json')).stdout)
  const { state, message } = checks.find(({ check }: { check: string }) => check === 'budgets')
  expect([state, message]).toEqual([
    'warn',
    `budgets measure the answers of these models in bytes: far/meta/large until ${time}; each exceeded a bound; \`parley budgets meters clear\` trusts a model again`,
  ])
  const cleared = await parley('budgets', 'meters', 'clear', 'far/meta/large')
  expect(cleared.stdout).toBe('cleared far/meta/large; running servers trust its usage within seconds\n')
  const again = await parley('budgets', 'meters', 'clear', 'far/meta/large')
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('is not metered by bytes')])
})

test('`budgets` reports invalid options by name', async () => {
  const { parley } = await start()
  for (const [words, problem] of [
    [['set', '--period', 'year', '--limit', '1'], /--period: must be one of day, week/],
    [['set', '--period', 'day', '--limit', '1', '--each', 'visitor'], /--each: requires --agent/],
    [['set', '--period', 'day', '--limit', '1', '--warn-at', '120'], /--warn-at: must be a whole number/],
    [['set', '--period', 'day', '--limit', '-1'], /limit: must be/],
    [['grant', 'bud_unknown', '1', '--reason', 'r'], /There is no budget 'bud_unknown'/],
  ] as const) {
    const { code, stderr } = await parley(...words)
    expect(code).toBe(1)
    expect(stderr).toMatch(problem)
  }
})
