/** Defines the console's routes; each page has a separate script, loaded on demand. */
import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router'
import { agentPageQuery, modelsQuery } from './agents/queries.ts'
import { queryClient } from './api.ts'
import { budgetsQuery } from './budgets/queries.ts'
import { prefetchFirstRun } from './first-run/first-run.ts'
import {
  parseAdminSearch,
  parseAgentsSearch,
  parseBinSearch,
  parseBudgetsSearch,
  parseConversationsSearch,
  parseFilesSearch,
  parseKeysSearch,
  parsePricesSearch,
  parseUploadsSearch,
  parseUsageSearch,
  parseVisitorSearch,
  parseVisitorsSearch,
  parseWebhookSearch,
  parseWebhooksSearch,
} from './search.ts'
import { BrokenPage, PendingPage, UnknownPage } from './shell/ErrorPage.tsx'
import { lazyPage } from './shell/page-scripts.ts'
import { Shell } from './shell/Shell.tsx'
import { SignInPage } from './shell/SignIn.tsx'
import { meQuery } from './shell/use-me.ts'

/** The editor's visible panes. */
interface EditorSearch {
  readonly view?: 'both' | 'form' | 'yaml' | 'try'
  readonly try?: boolean
  /** True directly after the agent was created, while the next steps are shown. */
  readonly created?: boolean
}

interface HistorySearch {
  readonly version?: number
  readonly against?: 'before' | 'current'
}

function readEditorSearch(search: Record<string, unknown>): EditorSearch {
  const view = (['both', 'form', 'yaml', 'try'] as const).find((one) => one === search.view)
  return {
    ...(view === undefined ? {} : { view }),
    ...(search.try === true ? { try: true } : {}),
    ...(search.created === true ? { created: true } : {}),
  }
}

const root = createRootRoute()

const signIn = createRoute({ getParentRoute: () => root, path: '/sign-in', component: SignInPage })

/** Requests the session while the page's script loads. */
const shell = createRoute({
  getParentRoute: () => root,
  id: 'shell',
  component: Shell,
  loader: () => void queryClient.prefetchQuery(meQuery),
})

const start = createRoute({
  getParentRoute: () => shell,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/agents', replace: true })
  },
})

const agents = createRoute({
  getParentRoute: () => shell,
  path: '/agents',
  validateSearch: parseAgentsSearch,
  loaderDeps: ({ search }) => search,
  loader: ({ deps }) => {
    prefetchFirstRun()
    void queryClient.prefetchQuery(agentPageQuery(deps))
  },
  component: lazyPage(() => import('./agents/AgentsPage.tsx'), 'AgentsPage'),
})

const getStarted = createRoute({
  getParentRoute: () => shell,
  path: '/get-started',
  component: lazyPage(() => import('./first-run/page.tsx'), 'FirstRunPage'),
})

const newAgent = createRoute({
  getParentRoute: () => shell,
  path: '/agents/new',
  validateSearch: (search): EditorSearch & { template?: string } => ({
    ...readEditorSearch(search),
    ...(typeof search.template === 'string' ? { template: search.template } : {}),
  }),
  loader: () => void queryClient.prefetchQuery(modelsQuery),
  component: lazyPage(() => import('./agents/NewAgentPage.tsx'), 'NewAgentPage'),
})

const agent = createRoute({
  getParentRoute: () => shell,
  path: '/agents/$agentId',
  component: lazyPage(() => import('./agents/AgentPage.tsx'), 'AgentPage'),
})

const editAgent = createRoute({
  getParentRoute: () => agent,
  path: '/',
  validateSearch: readEditorSearch,
  loader: () => void queryClient.prefetchQuery(modelsQuery),
  component: lazyPage(() => import('./agents/edit/EditAgentPage.tsx'), 'EditAgentPage'),
})

const agentHistory = createRoute({
  getParentRoute: () => agent,
  path: '/history',
  validateSearch: ({ version, against }: Record<string, unknown>): HistorySearch => ({
    ...(typeof version === 'number' ? { version } : {}),
    ...(against === 'current' ? { against } : {}),
  }),
  component: lazyPage(() => import('./agents/HistoryPage.tsx'), 'HistoryPage'),
})

const embedAgent = createRoute({
  getParentRoute: () => agent,
  path: '/embed',
  validateSearch: ({ as }: Record<string, unknown>): { as?: 'react' | 'api' | 'script' } =>
    as === 'react' || as === 'api' ? { as } : {},
  component: lazyPage(() => import('./embed/page.tsx'), 'EmbedPage'),
})

const agentModels = createRoute({
  getParentRoute: () => agent,
  path: '/models',
  component: lazyPage(() => import('./policy/page.tsx'), 'PolicyPage'),
})

const conversations = createRoute({
  getParentRoute: () => shell,
  path: '/conversations',
  validateSearch: parseConversationsSearch,
  component: lazyPage(() => import('./conversations/ConversationsPage.tsx'), 'ConversationsPage'),
})

const conversation = createRoute({
  getParentRoute: () => conversations,
  path: '$conversationId',
  component: lazyPage(() => import('./conversations/ConversationPage.tsx'), 'ConversationPage'),
})

const visitors = createRoute({
  getParentRoute: () => shell,
  path: '/visitors',
  validateSearch: parseVisitorsSearch,
  component: lazyPage(() => import('./visitors/VisitorsPage.tsx'), 'VisitorsPage'),
})

const visitor = createRoute({
  getParentRoute: () => shell,
  path: '/visitors/$visitorId',
  validateSearch: parseVisitorSearch,
  component: lazyPage(() => import('./visitors/VisitorPage.tsx'), 'VisitorPage'),
})

const webhooks = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks',
  validateSearch: parseWebhooksSearch,
  component: lazyPage(() => import('./webhooks/WebhooksPage.tsx'), 'WebhooksPage'),
})

const webhook = createRoute({
  getParentRoute: () => shell,
  path: '/webhooks/$webhookId',
  validateSearch: parseWebhookSearch,
  component: lazyPage(() => import('./webhooks/WebhookPage.tsx'), 'WebhookPage'),
})

const keys = createRoute({
  getParentRoute: () => shell,
  path: '/keys',
  validateSearch: parseKeysSearch,
  component: lazyPage(() => import('./keys/page.tsx'), 'KeysPage'),
})

const usage = createRoute({
  getParentRoute: () => shell,
  path: '/usage',
  validateSearch: parseUsageSearch,
  component: lazyPage(() => import('./usage/page.tsx'), 'UsagePage'),
})

const budgets = createRoute({
  getParentRoute: () => shell,
  path: '/budgets',
  validateSearch: parseBudgetsSearch,
  loader: () => void queryClient.prefetchQuery(budgetsQuery),
  component: lazyPage(() => import('./budgets/BudgetsPage.tsx'), 'BudgetsPage'),
})

const budget = createRoute({
  getParentRoute: () => shell,
  path: '/budgets/$budgetId',
  component: lazyPage(() => import('./budgets/BudgetPage.tsx'), 'BudgetPage'),
})

const uploads = createRoute({
  getParentRoute: () => shell,
  path: '/uploads',
  validateSearch: parseUploadsSearch,
  component: lazyPage(() => import('./uploads/page.tsx'), 'UploadsPage'),
})

const files = createRoute({
  getParentRoute: () => shell,
  path: '/files',
  validateSearch: parseFilesSearch,
  component: lazyPage(() => import('./files/page.tsx'), 'FilesPage'),
})

const providers = createRoute({
  getParentRoute: () => shell,
  path: '/providers',
  validateSearch: ({ add }: Record<string, unknown>): { add?: string } =>
    typeof add === 'string' ? { add } : {},
  component: lazyPage(() => import('./providers/page.tsx'), 'ProvidersPage'),
})

const prices = createRoute({
  getParentRoute: () => shell,
  path: '/prices',
  validateSearch: parsePricesSearch,
  component: lazyPage(() => import('./prices/page.tsx'), 'PricesPage'),
})

const bin = createRoute({
  getParentRoute: () => shell,
  path: '/bin',
  validateSearch: parseBinSearch,
  component: lazyPage(() => import('./bin/page.tsx'), 'BinPage'),
})

const admin = createRoute({
  getParentRoute: () => shell,
  path: '/admin',
  validateSearch: parseAdminSearch,
  component: lazyPage(() => import('./admin/page.tsx'), 'AdminPage'),
})

const design = createRoute({
  getParentRoute: () => shell,
  path: '/_design',
  component: lazyPage(() => import('./design/DesignPage.tsx'), 'DesignPage'),
})

const unknown = createRoute({ getParentRoute: () => shell, path: '$', component: UnknownPage })

const tree = root.addChildren([
  signIn,
  shell.addChildren([
    start,
    agents,
    getStarted,
    newAgent,
    agent.addChildren([editAgent, agentHistory, embedAgent, agentModels]),
    conversations.addChildren([conversation]),
    visitors,
    visitor,
    webhooks,
    webhook,
    keys,
    usage,
    budgets,
    budget,
    uploads,
    files,
    providers,
    prices,
    bin,
    admin,
    ...('development' in document.documentElement.dataset ? [design] : []),
    unknown,
  ]),
])

/** Creates the router, which reads the page's address immediately. Remove secrets from the address first. */
export function createConsoleRouter() {
  return createRouter({
    routeTree: tree,
    basepath: '/console',
    defaultPreload: 'intent',
    defaultPendingComponent: PendingPage,
    defaultPendingMs: 200,
    defaultErrorComponent: BrokenPage,
    defaultNotFoundComponent: UnknownPage,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
