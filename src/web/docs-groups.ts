/** Defines the order and the groups of the documentation's pages. */

const groups: readonly { title: string; names: readonly string[] }[] = [
  { title: 'Start', names: ['getting-started', 'faq', 'console', 'widget', 'library'] },
  {
    title: 'Agents',
    names: ['agents', 'tools', 'conversations', 'visitors', 'webhooks', 'budgets', 'prices'],
  },
  { title: 'Models', names: ['providers', 'local-models'] },
  { title: 'API', names: ['api', 'uploads', 'conversion'] },
  {
    title: 'Operation',
    names: [
      ...['deploy', 'configuration', 'operate', 'administration', 'console-identity', 'security'],
      ...['observability', 'backup', 'storage', 'postgresql', 'replicas'],
    ],
  },
]

/** Groups pages for the navigation. Other pages are listed last, because only contributors need them. */
export function groupPages<Page extends { readonly name: string }>(
  pages: readonly Page[],
): { title: string; pages: Page[] }[] {
  const byName = new Map(pages.map((page) => [page.name, page]))
  const listed = groups.map(({ title, names }) => ({
    title,
    pages: names.flatMap((name) => byName.get(name) ?? []),
  }))
  const names = new Set(groups.flatMap((group) => group.names))
  return [...listed, { title: 'Contributors', pages: pages.filter(({ name }) => !names.has(name)) }].filter(
    (group) => group.pages.length > 0,
  )
}
