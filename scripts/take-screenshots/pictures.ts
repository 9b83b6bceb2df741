/** Lists the screenshots that the README and the documentation show. */
import type { Page } from 'playwright-core'
import type { Installation } from '../../test/support/console-installation.ts'
import { askInPlayground, playgroundFrame } from '../../test/support/console-parts.ts'
import { listViews, openView } from '../../test/support/console-tour.ts'
import { ROOMS_ANSWER, type Showcase } from './showcase.ts'
import { askWidget, openHotel } from './widget.ts'

export interface Scenes {
  /** An installation with four weeks of use, on which the mock model answers. */
  readonly installation: Installation
  /** A hotel's installation with scripted answers and stored conversations. */
  readonly showcase: Showcase
  /** The key of an agent in the installation that suggests questions. */
  readonly followUpsKey: string
}

interface Picture {
  readonly name: string
  readonly scene: 'installation' | 'showcase'
  readonly colorScheme: 'light' | 'dark'
  readonly width: number
  readonly height: number
  readonly open: (page: Page, scenes: Scenes) => Promise<void>
}

export const pictures: readonly Picture[] = [
  {
    name: 'console-conversations',
    scene: 'showcase',
    colorScheme: 'light',
    width: 1280,
    height: 800,
    open: showConversation,
  },
  { name: 'widget', scene: 'showcase', colorScheme: 'light', width: 1280, height: 800, open: showWidget },
  {
    name: 'console-editor',
    scene: 'showcase',
    colorScheme: 'light',
    width: 1440,
    height: 900,
    open: showEditor,
  },
  {
    name: 'console-usage',
    scene: 'installation',
    colorScheme: 'dark',
    width: 1280,
    height: 800,
    open: showUsage,
  },
  {
    name: 'console-budgets',
    scene: 'installation',
    colorScheme: 'light',
    width: 1280,
    height: 560,
    open: showBudgets,
  },
]

const QUESTION = 'Are rooms free this weekend, for two people?'

async function showWidget(page: Page, { showcase }: Scenes): Promise<void> {
  await openHotel(page, showcase)
  await showcase.script(`{{up:text ${ROOMS_ANSWER}}}`)
  await askWidget(page, QUESTION, 'Shall I reserve one for you?')
}

async function showEditor(page: Page, { showcase }: Scenes): Promise<void> {
  const path = `/agents/${showcase.agentId}?view=form&try=true`
  const ready = () => playgroundFrame(page).getByRole('textbox')
  await openView(page, showcase.app.url, { name: 'try', path, ready })
  await showcase.script(`{{up:text ${ROOMS_ANSWER}}}`)
  await askInPlayground(page, QUESTION)
  await page.getByRole('group', { name: 'Answer details' }).waitFor()
  await playgroundFrame(page).getByText('free from Friday to Sunday').waitFor()
  await page.evaluate(() => window.scrollTo(0, 0))
}

async function showConversation(page: Page, { showcase }: Scenes): Promise<void> {
  const path = `/conversations/${showcase.conversationId}`
  const ready = () => page.getByText('we leave your key').first()
  await openView(page, showcase.app.url, { name: 'conversation', path, ready })
}

async function openNamed(page: Page, installation: Installation, name: string): Promise<void> {
  const view = listViews(installation).find((one) => one.name === name)
  if (view === undefined) throw new Error(`There is no view ${name}.`)
  await openView(page, installation.app.url, view)
}

function showUsage(page: Page, { installation }: Scenes): Promise<void> {
  return openNamed(page, installation, 'usage')
}

function showBudgets(page: Page, { installation }: Scenes): Promise<void> {
  return openNamed(page, installation, 'budgets')
}
