/** Starts an installation with a hotel's agent, whose answers are scripted, and with stored conversations. */
import { openApp, type TestApp } from '../../test/support/app.ts'
import { answer, change } from '../../test/support/handover.ts'
import { startUpstream } from '../../test/support/start-upstream.ts'
import { storingEnv } from '../../test/support/stored-turns.ts'
import { beginSession, sayAndWait } from '../../test/support/visitors.ts'

export interface Showcase {
  readonly app: TestApp
  readonly agentId: string
  readonly agentKey: string
  readonly conversationId: string
  readonly visitorId: string
  readonly webhookId: string
  /** Sets the directives for the next answer. */
  script(directives: string): Promise<void>
  close(): Promise<void>
}

/** The next answer in a screenshot of the widget. */
export const ROOMS_ANSWER = `Yes, for two people we have **two rooms** free from Friday to Sunday:

| Room | Per night |
|---|---|
| Sea view room | €129 |
| Garden room | €98 |

Both include breakfast. Shall I reserve one for you?`

const yaml = `name: Concierge
model: up-chat
instructions: |
  You are the concierge of Hotel Seaview, a small hotel by the sea.
  Answer in two or three sentences. Offer free rooms with their prices.
  If you do not know something, say so.
temperature: 0.4
conversations:
  keep: 30d
handover: {}
attachments:
  types: [image, text]
behavior:
  tone: warm, never pushy
embed:
  title: Hotel Seaview
  greeting: Welcome! How can I help with your stay?
  starters:
    - Are rooms free this weekend?
    - When is check-in?
  theme:
    primaryColor: "#0f5d66"
    headerStyle: solid
    launcherLabel: Ask the concierge
`

const talks: readonly (readonly [question: string, answer: string])[] = [
  ['Do you have parking?', 'Yes, guests park for free behind the hotel. You do not have to reserve a space.'],
  ['Can we bring our dog?', 'Dogs are welcome in the garden rooms, for €12 per night.'],
  [
    'When is breakfast served?',
    'Breakfast is served from 7:30 to 10:30, on the terrace if the weather is good.',
  ],
  ['Is the spa open on Sunday?', 'Yes, the spa is open from 9:00 to 20:00 on Sundays.'],
]

/** The caller must close it. */
export async function openShowcase(): Promise<Showcase> {
  const upstream = await startUpstream()
  const app = await openApp({ ...storingEnv(upstream), PARLEY_WEBHOOK_ALLOW: 'hooks.example.org' })
  const close = async () => {
    await app.close()
    await upstream.stop()
  }
  try {
    const script = (directives: string) => upstream.script('/v1/chat/completions', directives)
    const { agent_id: agentId, agent_key: agentKey } = await app.createAgent(yaml)
    for (const [question, text] of talks) {
      await script(`{{up:text ${text}}}`)
      await sayAndWait(await beginSession(app, agentKey), question)
    }
    const guest = await beginSession(app, agentKey)
    await script(`{{up:text ${ROOMS_ANSWER}}}`)
    const { sent } = await sayAndWait(guest, 'Are rooms free this weekend, for two people?')
    const conversation = sent.conversation.id
    await script('{{up:text I am not sure about late arrivals. Would you like to talk to the reception?}}')
    await sayAndWait(guest, 'Great! Our train arrives at 23:40. Can we still check in?', { conversation })
    expectStatus(await change(app, conversation, 'takeover', { name: 'Ana' }))
    expectStatus(
      await answer(
        app,
        conversation,
        'Good evening! Yes, of course: we leave your key in the safe next to the door. The code is on your confirmation.',
        { name: 'Ana' },
      ),
    )
    const { body: webhook } = expectStatus(
      await app.call('POST', '/v1/webhooks', {
        body: { url: 'https://hooks.example.org/parley', events: ['conversation.waiting'] },
      }),
    )
    const { agent_id: old } = await app.createAgent(
      'name: Summer offers\ninstructions: Explain the summer offers.\n',
    )
    expectStatus(await app.call('POST', `/v1/agents/${old}/bin`))
    const visitorId = guest.id
    return {
      app,
      agentId,
      agentKey,
      visitorId,
      webhookId: webhook.id,
      conversationId: conversation,
      script,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function expectStatus<Response extends { readonly status: number; readonly text: string }>(
  response: Response,
): Response {
  if (response.status >= 300) throw new Error(response.text)
  return response
}
