/** Tests that verified visitors of one server cannot reach each other's data, in thousands of interleaved calls. */
import { randomUUID } from 'node:crypto'
import { expect, inject, test } from 'vitest'
import type { HostTool } from '../../src/server/service.ts'
import {
  claimsOf,
  createKeyPair,
  createSecret,
  type IdentityVisit,
  identify,
  identifyingAgent,
  signIdentity,
  signWithSecret,
  startIdentityVisit,
} from '../support/identities.ts'
import { listTurns } from '../support/stored-chats.ts'
import { asVisitor, say, type TestVisitor } from '../support/visitors.ts'

/**
 * All visitors call at once. With 100 visitors on a busy machine, some calls wait more than ten seconds for a PostgreSQL
 * connection and return 503.
 */
const VISITORS = inject('database') === 'postgres' ? 30 : 100
const CALLS = VISITORS * 100
const ROUNDS = 10
/** The round in which each visitor sends a second message. */
const SECOND_MESSAGE = 4

const unlimited = {
  PARLEY_MAX_STREAMS_AGENT: '0',
  PARLEY_MAX_STREAMS_ADDRESS: '0',
  PARLEY_MAX_STREAMS_PARENT: '0',
}
const notFound = { httpStatus: 404 }
const visitorRequired = { code: 'visitor_required' }
const identityInvalid = { httpStatus: 401, code: 'identity_invalid' }
const identityExpired = { httpStatus: 401, code: 'identity_expired' }

interface Person extends TestVisitor {
  readonly subject: string
  readonly conversation: string
  readonly turn: string
}

/** A call that must fail with an error that has these fields. */
type Attack = readonly [call: Promise<unknown>, failure: object]

const subjectOf = (index: number) => `user-${String(index).padStart(3, '0')}`
const messageOf = (subject: string, text: string) =>
  `[[tool:whoami ${JSON.stringify({ subject })}]] ${subject} ${text}`

async function start() {
  const seen: [called: unknown, visitor: string | undefined][] = []
  const handler: HostTool['handler'] = (args, { visitor }) => {
    seen.push([args.subject, visitor?.subject])
    return 'done'
  }
  const conversations = { keep: '30d', handover: {} }
  const definition = { tools: ['whoami'], conversations }
  const visit = await startIdentityVisit({}, unlimited, { tools: { whoami: { handler } }, definition })
  const pair = await createKeyPair('RS256')
  const { agent_key: key, agent_id: agentId } = await visit.app.createAgent(
    identifyingAgent({ jwt: { ...claimPlace(visit), jwks: { keys: [pair.jwk] } } }, { conversations }),
  )
  const stranger = await visit.app.createAgent(identifyingAgent({}, { conversations }))
  const secret = await createSecret(visit.app, stranger.agent_id)
  return { visit, seen, keyed: { ...visit, key, agentId, pair }, stranger: { secret } }
}

type Started = Awaited<ReturnType<typeof start>>

function claimPlace(visit: Pick<IdentityVisit, 'clock'>) {
  const { iss, aud } = claimsOf(visit)
  return { issuer: iss, audience: aud }
}

async function arrive({ visit }: Started, index: number): Promise<Person> {
  const subject = subjectOf(index)
  const one = await identify(visit, await signIdentity(visit, { sub: subject }))
  const { conversation, turn } = await say(one, messageOf(subject, 'first'))
  return { ...one, subject, conversation: conversation.id, turn: turn.id }
}

const unsigned = (claims: object) =>
  `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.`

interface HostileIdentity {
  readonly place: Pick<IdentityVisit, 'app' | 'key'>
  readonly token: string
  readonly failure?: object
}

/** Returns an identity of the subject that the agent of `place` must reject; `index` selects one of six kinds. */
async function forgeIdentity(
  { visit, keyed, stranger }: Started,
  sub: string,
  index: number,
): Promise<HostileIdentity> {
  const nowSeconds = Math.floor(visit.clock.now() / 1000)
  const expired = { sub, iat: nowSeconds - 900, exp: nowSeconds - 600 }
  switch (index % 6) {
    case 0:
      return { place: visit, token: await signWithSecret(stranger.secret, claimsOf(visit, { sub })) }
    case 1:
      return { place: visit, token: await signIdentity(visit, expired), failure: identityExpired }
    case 2:
      return { place: visit, token: unsigned(claimsOf(visit, { sub })) }
    case 3:
      return { place: visit, token: await signIdentity(visit, { sub, aud: 'another-shop' }) }
    case 4:
      // Both agents must reject the kind of key that the other one accepts.
      return { place: visit, token: await keyed.pair.sign(claimsOf(visit, { sub })) }
    default: {
      const publicKey = JSON.stringify(keyed.pair.jwk)
      return { place: keyed, token: await signWithSecret(publicKey, claimsOf(visit, { sub })) }
    }
  }
}

/** Returns a token that was not minted for its visitor; `index` selects one of four kinds. */
function forgeToken(own: string, victims: string, index: number): string {
  const [ownHead = '', ownExpiry, ownIdentity, ownSignature = ''] = own.split('.')
  const [head, expiry, identity] = victims.split('.')
  switch (index % 4) {
    case 0:
      return [head, ownExpiry, ownIdentity, ownSignature].join('.')
    case 1:
      return [head, expiry, identity, ownSignature].join('.')
    case 2:
      return [ownHead, String(Number(ownExpiry) + 86_400), ownIdentity, ownSignature].join('.')
    default:
      return [head, expiry, ownSignature].join('.')
  }
}

/** Two calls that change a conversation or turn of another visitor; `index` selects the kinds. */
function changeForeign({ visitor }: Person, victim: Person, index: number): Attack[] {
  const { conversation, turn } = victim
  const client_id = randomUUID()
  const results = [{ call_id: 'call_0', output: 'mine' }]
  const calls = [
    () => visitor.cancel.mutate({ turn }),
    () => visitor.continue.mutate({ turn }),
    () => visitor.toolResults.mutate({ turn, client_id, results }),
    () => visitor.rate.mutate({ turn, value: 'down' }),
    () => visitor.requestPerson.mutate({ conversation }),
    () => visitor.delete.mutate({ conversation }),
  ]
  return [index, index + 1].map((at) => [(calls[at % calls.length] as () => Promise<unknown>)(), notFound])
}

/** Makes ten calls at once: three of the visitor, and seven attacks. Returns the number of calls. */
async function callAll(started: Started, one: Person, victim: Person, round: number): Promise<number> {
  const { visit, keyed } = started
  const { visitor, subject, conversation } = one
  const { place, token, failure = identityInvalid } = await forgeIdentity(started, victim.subject, round)
  const own = [
    visitor.conversations.query({}).then(({ data }) => expect(data).toMatchObject([{ id: conversation }])),
    visitor.open.query({ conversation }).then(({ items }) => {
      const texts = items.flatMap(({ text, author }) => (author === 'visitor' ? [text] : []))
      expect(texts).toEqual(texts.map(() => expect.stringContaining(subject)))
    }),
    round === SECOND_MESSAGE
      ? say(one, messageOf(subject, 'second'), { conversation })
      : visitor.session.mutate({}).then((session) => expect(session.visitor.id).toBe(one.id)),
  ]
  const attacks: Attack[] = [
    [visitor.open.query({ conversation: victim.conversation }), notFound],
    [say(one, messageOf(subject, 'foreign'), { conversation: victim.conversation }), notFound],
    ...changeForeign(one, victim, round),
    [
      asVisitor(visit.app, visit.key, forgeToken(one.token, victim.token, round)).conversations.query({}),
      visitorRequired,
    ],
    [asVisitor(visit.app, keyed.key, one.token).conversations.query({}), visitorRequired],
    [identify(place, token), failure],
  ]
  const [failures] = await Promise.all([Promise.allSettled(attacks.map(([call]) => call)), ...own])
  expect(
    failures.map((result) => (result.status === 'rejected' ? result.reason.data : 'succeeded')),
  ).toMatchObject(attacks.map(([, expected]) => expected))
  return own.length + attacks.length
}

test(`${VISITORS} verified visitors reach only their own conversations and subject in ${CALLS} interleaved calls`, {
  timeout: 300_000,
}, async () => {
  const started = await start()
  const { visit, seen } = started
  const people = await Promise.all(Array.from({ length: VISITORS }, (_, index) => arrive(started, index)))
  const countUnended = async () =>
    (await listTurns(visit.app)).filter(({ status }) => status !== 'completed').length
  await expect.poll(countUnended).toBe(0)
  let calls = 0
  for (let round = 0; round < ROUNDS; round++) {
    const counts = await Promise.all(
      people.map((one, index) =>
        callAll(started, one, people[(index + 7 * round + 1) % VISITORS] as Person, round),
      ),
    )
    calls += counts.reduce((sum, count) => sum + count, 0)
    await expect.poll(countUnended).toBe(0)
  }
  expect(calls).toBe(CALLS)
  const expected = people.flatMap(({ subject }) => [subject, subject]).map((subject) => [subject, subject])
  expect(seen.sort()).toEqual(expected)
  const titles = await Promise.all(people.map(({ visitor }) => visitor.conversations.query({})))
  expect(titles.map(({ data }) => data)).toMatchObject(
    people.map(({ conversation, subject }) => [
      { id: conversation, title: expect.stringContaining(subject), turns: 2, mode: 'model' },
    ]),
  )
  const { body } = await visit.app.call('GET', '/v1/conversations?rating=down')
  expect(body.data).toEqual([])
})
