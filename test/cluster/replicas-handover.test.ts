/** Tests takeovers of conversations whose turns run on another replica. */
import { describe, expect, test, vi } from 'vitest'
import type { TestApp } from '../support/app.ts'
import { isMode, modesOf, textsOf } from '../support/handover.ts'
import { callServer, makeFolder, startServer } from '../support/process.ts'
import { createReplicaSettings, sharedStores } from '../support/replicas.ts'
import { createTypedClient } from '../support/rpc.ts'
import { shareUpstream } from '../support/start-upstream.ts'
import { createStoringAgent, storingEnv } from '../support/stored-turns.ts'
import { asVisitor, followUntil, say } from '../support/visitors.ts'

// Starting processes is slow.
vi.setConfig({ testTimeout: 180_000 })

const upstream = await shareUpstream()

describe.each(sharedStores)('with %s', (store) => {
  test('only one of two people on different replicas can take over, the model stops, and both replicas show the same conversation', async () => {
    await upstream.clear()
    const folder = await makeFolder()
    const shared = await createReplicaSettings(store)
    const parentKey = shared.PARLEY_PARENT_KEY as string
    const env = { ...shared, ...storingEnv(upstream), PARLEY_DATA_DIR: `${folder}/data` }
    const one = await startServer({ folder, env })
    const other = await startServer({ folder, env })
    const conversations = { keep: '30d', onDisconnect: 'continue', handover: {} }
    const { key } = await createStoringAgent(one.url, parentKey, { conversations })
    const { token } = await asVisitor(one, key).session.mutate({})
    const here = { visitor: asVisitor(one, key, token) }
    const there = { visitor: asVisitor(other, key, token) }

    const { conversation, cursor, turn } = await say(here, 'Explain. {{up:hang-after 4}}')
    const id = conversation.id
    await followUntil(there, { conversation: id, cursor }, (_, { length }) => length === 3)
    const take = (server: { readonly url: string }, name: string) =>
      callServer(server.url, 'POST', `/v1/conversations/${id}/takeover`, parentKey, { name })
    const answers = await Promise.all([take(other, 'Ana'), take(one, 'Bo')])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409])
    const winner = answers.find(({ status }) => status === 200)?.body.assignee
    expect(answers.find(({ status }) => status === 409)?.body.error).toMatchObject({
      ...{ code: 'wrong_mode', mode: 'person', assignee: winner },
    })
    const [chat] = (await upstream.listRequests()).filter(({ path }) => path === '/v1/chat/completions')
    expect(await upstream.waitForEnd(chat?.id ?? -1)).toMatchObject({ endedBy: 'client' })
    const { body } = await callServer(one.url, 'GET', `/v1/turns/${turn.id}`, parentKey)
    expect(body.status).toBe('cancelled')

    const client = createTypedClient({ url: other.url } as TestApp, parentKey)
    const leaving = new AbortController()
    const waiting = await client.conversations.waiting.query({}, { signal: leaving.signal })
    const counts = waiting[Symbol.asyncIterator]()
    expect((await counts.next()).value?.count).toBe(0)
    const post = (server: { readonly url: string }, what: string) =>
      callServer(server.url, 'POST', `/v1/conversations/${id}/${what}`, parentKey, {})
    await here.visitor.send.mutate({ conversation: id, client_id: crypto.randomUUID(), text: 'Hello?' })
    await post(one, 'handback')
    await post(one, 'handover')
    expect((await counts.next()).value?.count).toBe(1)
    leaving.abort()
    const [near, far] = await Promise.all(
      [here, there].map((visitor) =>
        followUntil(visitor, { conversation: id, cursor: '0.0.e' }, isMode('waiting')),
      ),
    )
    expect(modesOf(near ?? [])).toEqual(['person', 'model', 'waiting'])
    expect(textsOf(near ?? []).at(-1)).toBe('Hello?')
    expect(far).toEqual(near)
  })
})
