import { describe, expect, test } from 'vitest'
import { startApp } from './support/app.ts'
import { as, proxied } from './support/console.ts'
import { callProcedure } from './support/rpc.ts'

const ada = 'ada@example.org'
const yaml = 'name: Guide\ninstructions: Help.\n'

describe('a user whom the proxy has signed in', () => {
  test('works with a tenant of their own', async () => {
    const app = await startApp(proxied)
    await app.createAgent()
    const created = await callProcedure(app, 'agents.create', { yaml }, as(ada))
    expect(created.status).toBe(200)
    const listed = await callProcedure(app, 'agents.list', {}, as(ada))
    expect(listed.body.result.data.json.data).toHaveLength(1)
    const other = await callProcedure(app, 'agents.list', {}, as('grace@example.org'))
    expect(other.body.result.data.json.data).toEqual([])
  })

  test('is the same in capitals and in another normal form', async () => {
    const app = await startApp(proxied)
    await callProcedure(app, 'agents.create', { yaml }, as('Zo\u00eb@Example.org'.normalize('NFC')))
    for (const email of ['ZOË@example.org', 'zoe\u0308@example.org']) {
      const sent = Buffer.from(email).toString('latin1')
      const { body } = await callProcedure(app, 'agents.list', {}, as(sent))
      expect(body.result.data.json.data).toHaveLength(1)
    }
  })
})
