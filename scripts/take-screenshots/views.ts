/** Lists the views of the console and the widget for a complete set of screenshots. */
import { setTimeout } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { listViews, openView } from '../../test/support/console-tour.ts'
import type { Scenes } from './pictures.ts'
import { ROOMS_ANSWER } from './showcase.ts'
import { askWidget, frameOf, openHotel } from './widget.ts'

export interface SceneView {
  readonly name: string
  readonly open: (page: Page, scenes: Scenes) => Promise<void>
  /** Whether the screenshot shows the window instead of the whole page. */
  readonly isWindow?: boolean
}

/** The views with stored objects that only the showcase has, with a text that appears last. */
const storedViews: readonly (readonly [
  name: string,
  path: (scenes: Scenes['showcase']) => string,
  text: string | RegExp,
])[] = [
  ['get-started', () => '/get-started', 'Connect a model'],
  ['conversations-list', () => '/conversations', 'Do you have parking?'],
  ['conversation', ({ conversationId }) => `/conversations/${conversationId}`, 'we leave your key'],
  ['visitors', () => '/visitors', /anonymous/i],
  ['visitor', ({ visitorId }) => `/visitors/${visitorId}`, /anonymous/i],
  ['webhooks', () => '/webhooks', 'hooks.example.org'],
  ['webhook', ({ webhookId }) => `/webhooks/${webhookId}`, 'hooks.example.org'],
  ['bin', () => '/bin', 'Summer offers'],
  ['calls', () => '/usage?view=calls', 'up-chat'],
]

/** Lists the console's views of the installation with four weeks of use. */
export function listConsoleViews({ installation }: Scenes): SceneView[] {
  return listViews(installation).map((view) => ({
    name: `console-${view.name}`,
    open: (page) => openView(page, installation.app.url, view),
  }))
}

/** A page tool of the hotel's website; the page returns a result for each call. */
const tools = [
  {
    type: 'function',
    function: {
      name: 'show_room',
      description: 'Shows a room to the guest.',
      parameters: {
        type: 'object',
        properties: { room: { type: 'string', title: 'Room' } },
        required: ['room'],
      },
      annotations: { requiresApproval: true, title: 'Show a room' },
    },
  },
]

const widgetViews: readonly (readonly [name: string, open: SceneView['open']])[] = [
  ['closed', (page, { showcase }) => openHotel(page, showcase, { autoOpen: false })],
  ['open', (page, { showcase }) => openHotel(page, showcase)],
  ['answer', showAnswer],
  ['follow-ups', showFollowUps],
  ['tool-call', showToolCall],
  ['failure', showFailure],
  ['attachment', showAttachment],
  ['menu', showMenu],
]

/** The views of the showcase: the console's views of stored objects, and the widget. */
export const showcaseViews: readonly SceneView[] = [
  ...storedViews.map(
    ([name, path, text]): SceneView => ({
      name: `console-${name}`,
      open: (page, { showcase }) =>
        openView(page, showcase.app.url, {
          name,
          path: path(showcase),
          ready: () => page.getByText(text).filter({ visible: true }).first(),
        }),
    }),
  ),
  ...widgetViews.map(
    ([name, open]): SceneView => ({
      name: `widget-${name}`,
      isWindow: true,
      async open(page, scenes) {
        await open(page, scenes)
        // Lets the opening animation end.
        await setTimeout(400)
      },
    }),
  ),
]

/** The mock model suggests the questions. */
async function showFollowUps(page: Page, { installation, followUpsKey }: Scenes): Promise<void> {
  await openHotel(page, { app: installation.app, agentKey: followUpsKey })
  await askWidget(page, 'Are rooms free this weekend?', 'You said')
  await frameOf(page).getByRole('list', { name: 'Suggestions' }).waitFor()
}

async function showAnswer(page: Page, { showcase }: Scenes): Promise<void> {
  await openHotel(page, showcase)
  await showcase.script(`{{up:text ${ROOMS_ANSWER}}}`)
  await askWidget(page, 'Are rooms free this weekend?', 'Shall I reserve one for you?')
}

async function showToolCall(page: Page, { showcase }: Scenes): Promise<void> {
  await openHotel(page, showcase, { tools })
  await showcase.script('{{up:tool postMessage_show_room {"room":"Sea view room"}}}')
  await frameOf(page).getByRole('textbox').fill('Please show me the room with a sea view.')
  await frameOf(page).getByRole('button', { name: 'Send', exact: true }).click()
  await frameOf(page).getByText('Sea view room').first().waitFor()
}

async function showFailure(page: Page, { showcase }: Scenes): Promise<void> {
  await openHotel(page, showcase)
  await showcase.script('{{up:status 400}}')
  await frameOf(page).getByRole('textbox').fill('When is check-in?')
  await frameOf(page).getByRole('button', { name: 'Send', exact: true }).click()
  await frameOf(page).getByRole('button', { name: 'Try again' }).waitFor()
}

async function showAttachment(page: Page, { showcase }: Scenes): Promise<void> {
  await openHotel(page, showcase)
  const buffer = Buffer.from('Arrival: Friday\nGuests: 2\n')
  const file = { name: 'booking.txt', mimeType: 'text/plain', buffer }
  await frameOf(page).locator('input[type=file]').first().setInputFiles(file)
  await frameOf(page).getByText('booking.txt').first().waitFor()
}

async function showMenu(page: Page, scenes: Scenes): Promise<void> {
  await showAnswer(page, scenes)
  await frameOf(page).getByRole('button', { name: 'More actions' }).click()
  await frameOf(page).getByRole('menu').waitFor()
}
