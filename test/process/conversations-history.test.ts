/** Tests that a turn reads only the stored items that it sends to the model. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openSqliteFile } from '../support/database.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { measureCost } from '../support/process-cost.ts'

const definition = {
  name: 'A',
  instructions: 'B',
  conversations: { keep: '30d', history: { turns: 4, tokens: 1_000 } },
}
const ITEMS = 100
const ITEM_BYTES = 1_500_000
const mostMemoryMb = 50

test('a turn in a 150 MB conversation uses less than 50 MB of memory if its history is limited', async () => {
  const folder = await makeFolder()
  const server = await startServer({ folder })
  const call = async (path: string, body: object, key = server.key) => {
    const { status, body: answer } = await callServer(server.url, 'POST', path, key, body)
    expect([path, status]).toEqual([path, status < 300 ? status : answer])
    return answer
  }
  const { agent_id: agentId } = await call('/v1/agents', { yaml: JSON.stringify(definition) })
  const turn = { model: `agent/${agentId}` }
  const items = [{ type: 'message', role: 'user', content: 'first' }]
  const { id: conversation } = await call('/v1/conversations', { items })
  insertLargeItems(join(folder, 'data'))
  await call('/v1/responses', { ...turn, input: 'second', conversation })
  const cost = await measureCost(server.pid, async () => {
    const { status } = await call('/v1/responses', { ...turn, input: 'third', conversation })
    expect(status).toBe('completed')
  })
  expect(cost.memoryMb).toBeLessThan(mostMemoryMb)
})

/** Inserts large copies of the only stored item, because adding them with requests would take too long. */
function insertLargeItems(dataDir: string): void {
  const db = openSqliteFile(dataDir, 'conversations.db')
  const columns = (db.pragma('table_info(items)') as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== 'n')
  const large = {
    type: 'message',
    role: 'user',
    content: [{ type: 'input_text', text: 'x'.repeat(ITEM_BYTES) }],
  }
  const body = JSON.stringify(large)
  const values: Readonly<Record<string, string>> = {
    id: `id || '-' || @at`,
    position: 'position + @at',
    body: '@body',
    bytes: '@bytes',
  }
  const insert = db.prepare(`insert into items (${columns})
    select ${columns.map((name) => values[name] ?? name)} from items where position = 1`)
  const insertAll = db.transaction(() => {
    for (let at = 1; at <= ITEMS; at++) insert.run({ at, body, bytes: body.length })
  })
  insertAll()
  db.prepare('update conversations set items = items + ?, bytes = bytes + ?').run(ITEMS, ITEMS * body.length)
  db.close()
}
