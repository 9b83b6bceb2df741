/** Checks whether the page behind the widget can be shown in the preview, and explains why it cannot. */
import { Alert, Button, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { api, type Outputs } from '../api.ts'
import { t } from '../strings/language.ts'

type CheckedPage = Outputs['manager']['checkPage']

/** Returns undefined during the check. A check that fails counts as a page that was not checked. */
export function usePageCheck(url: URL | undefined): CheckedPage | undefined {
  const { data, isError } = useQuery({
    queryKey: ['embed', 'page', url?.href],
    queryFn: () =>
      api.manager.checkPage.mutate({ url: url?.href ?? '', parent_origin: window.location.origin }),
    enabled: url !== undefined,
    retry: false,
    staleTime: 60_000,
  })
  return isError ? { outcome: 'unchecked', rule: null, status: null } : data
}

/** Returns whether the preview shows the page; it shows the sample page instead of an empty frame. */
export function isPageShown(checked: CheckedPage | undefined): boolean {
  return checked !== undefined && checked.outcome !== 'refused' && checked.outcome !== 'unreachable'
}

interface PageNoticeProps {
  readonly url: URL | undefined
  readonly checked: CheckedPage | undefined
  /** Shows the sample page. */
  readonly onSample: () => void
}

/** Stays in the document while it is empty, so that screen readers announce its changes. */
export function PageNotice({ url, checked, onSample }: PageNoticeProps) {
  return (
    <div role="status">
      {url === undefined || checked?.outcome === 'shown' ? null : (
        <Notice host={url.host} checked={checked} onSample={onSample} />
      )}
    </div>
  )
}

interface NoticeProps extends Omit<PageNoticeProps, 'url'> {
  readonly host: string
}

function Notice({ host, checked, onSample }: NoticeProps) {
  if (checked === undefined)
    return (
      <Text size="sm" c="dimmed">
        {t('embed.checkingPage')}
      </Text>
    )
  const isProblem = checked.outcome !== 'unchecked'
  return (
    <Alert p="xs" color={isProblem ? 'yellow' : 'gray'}>
      <Group gap="xs" justify="space-between">
        <Text size="sm" className="page-notice">
          {describe(host, checked)}
        </Text>
        {isProblem ? (
          <Button size="xs" variant="default" onClick={onSample}>
            {t('embed.useSample')}
          </Button>
        ) : null}
      </Group>
    </Alert>
  )
}

function describe(host: string, { outcome, rule, status }: CheckedPage): string {
  if (outcome === 'refused') return t('embed.pageRefused', { host, rule: rule ?? '' })
  if (outcome === 'unreachable') return t('embed.pageUnreachable', { host })
  if (outcome === 'failed') return t('embed.pageFailed', { host, status: status ?? 0 })
  return t('embed.mayRefuse')
}
