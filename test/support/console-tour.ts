/** Lists the console's views, and opens them. */
import type { Locator, Page } from 'playwright-core'
import type { Installation } from './console-installation.ts'

export interface View {
  readonly name: string
  /** The path relative to `/console`. */
  readonly path: string
  /** The element that appears last. */
  readonly ready: (page: Page) => Locator
}

/** Lists all views in the order of the navigation. */
export function listViews({ support: { agent_id: id }, artifactId, ...budgets }: Installation): View[] {
  const agent = `/agents/${id}`
  const { budgetId, visitorBudgetId } = budgets
  const text = (said: string | RegExp) => (page: Page) => page.getByText(said).first()
  const table = (name: string) => (page: Page) =>
    page.getByRole('table', { name }).locator('tbody tr').first()
  const editor = (page: Page) => page.locator('.cm-content')
  const charts = (page: Page) => page.locator('.plot svg').nth(3)
  const widget = (page: Page) =>
    page.locator('.preview-stage iframe').contentFrame().getByRole('button', { name: 'Open chat' })
  const trial = (page: Page) => page.locator('.lane iframe').contentFrame().getByRole('textbox')
  return [
    { name: 'agents', path: '/agents', ready: (page) => page.getByRole('link', { name: 'Support' }) },
    { name: 'agents-not-found', path: '/agents?q=nobody', ready: text('No matching agents') },
    { name: 'templates', path: '/agents/new', ready: (page) => page.getByRole('link', { name: /Blank/ }) },
    { name: 'create', path: '/agents/new?template=analyst&view=form', ready: text('Instructions') },
    { name: 'edit', path: `${agent}?view=form`, ready: (page) => page.getByLabel('Instructions') },
    { name: 'edit-text', path: `${agent}?view=yaml`, ready: editor },
    { name: 'edit-try', path: `${agent}?view=try&try=true`, ready: trial },
    { name: 'embed', path: `${agent}/embed`, ready: widget },
    { name: 'embed-react', path: `${agent}/embed?as=react`, ready: widget },
    { name: 'embed-api', path: `${agent}/embed?as=api`, ready: widget },
    { name: 'models', path: `${agent}/models`, ready: text('In effect now') },
    { name: 'history', path: `${agent}/history`, ready: editor },
    { name: 'history-first', path: `${agent}/history?version=1&against=current`, ready: editor },
    { name: 'conversations', path: '/conversations', ready: text('No conversations yet') },
    { name: 'keys', path: '/keys', ready: (page) => page.getByRole('cell', { name: /^first/ }) },
    {
      name: 'keys-agent',
      path: '/keys?tab=agent',
      ready: (page) => page.getByRole('cell', { name: 'Support', exact: true }),
    },
    { name: 'usage', path: '/usage', ready: charts },
    { name: 'usage-agent', path: '/usage?by=agent', ready: table('Usage by agent') },
    { name: 'usage-model', path: '/usage?by=model&range=7', ready: table('Usage by model') },
    { name: 'usage-key', path: '/usage?by=key&whose=all', ready: table('Usage by key') },
    { name: 'budgets', path: '/budgets', ready: table('Budgets') },
    { name: 'budget', path: `/budgets/${budgetId}`, ready: text('Booked') },
    { name: 'budget-visitors', path: `/budgets/${visitorBudgetId}`, ready: table('Visitors') },
    { name: 'uploads', path: '/uploads', ready: text('Tour of the workshop') },
    {
      name: 'upload',
      path: `/uploads?artifact=${artifactId}`,
      ready: (page) => page.locator('[role=dialog] video'),
    },
    { name: 'files', path: '/files', ready: text('prices.csv') },
    { name: 'providers', path: '/providers', ready: table('Model providers') },
    { name: 'prices', path: '/prices', ready: table('Prices') },
    { name: 'admin-users', path: '/admin', ready: text('Administrator') },
    { name: 'admin-keys', path: '/admin?tab=keys', ready: text('Night jobs') },
    { name: 'admin-usage', path: '/admin?tab=usage&by=key', ready: table('Usage by key') },
    { name: 'admin-audit', path: '/admin?tab=audit', ready: table('Audit log') },
    { name: 'unknown', path: '/nothing', ready: text('This page does not exist') },
  ]
}

/** The timeout for a view to load, in milliseconds. */
const WAIT_MS = 60_000

/** Opens a view and waits until it is fully loaded and painted. */
export async function openView(page: Page, url: string, { path, ready }: View): Promise<void> {
  await page.goto(`${url}/console${path}`, { timeout: WAIT_MS })
  await ready(page).waitFor({ timeout: WAIT_MS })
  await page.waitForFunction(
    () => document.querySelector('[aria-busy=true], .mantine-Skeleton-root') === null,
  )
  await page.evaluate(
    () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))),
  )
}
