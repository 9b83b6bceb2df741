/** Shows the progress of an erasure, then its receipt. */
import { Anchor, Breadcrumbs, Button, Group, Loader, Stack, Text, Title } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useEffect } from 'react'
import { CodeBlock } from '../components/CopyButton.tsx'
import { Facts } from '../components/Facts.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Failed, Loading } from '../components/QueryStates.tsx'
import { saveText } from '../components/save-text.ts'
import { toFailure } from '../failure.ts'
import { renderMoment, renderNumber } from '../format.ts'
import { UnknownPage } from '../shell/ErrorPage.tsx'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'
import { type Erasure, erasureQuery } from './queries.ts'

export function ErasureView({ id }: { readonly id: string }) {
  const { data: erasure, error, refetch } = useQuery(erasureQuery(id))
  const queries = useQueryClient()
  const isDone = erasure?.status === 'done'
  // Removes the visitor and the deleted conversations from all lists.
  useEffect(() => {
    if (!isDone) return
    for (const key of ['visitors', 'conversations'])
      queries.removeQueries({ queryKey: [key], type: 'inactive' })
  }, [isDone, queries])
  if (erasure === undefined && error !== null)
    return toFailure(error).status === 404 ? (
      <UnknownPage />
    ) : (
      <Failed error={error} what="receipt" retry={() => void refetch()} />
    )
  return (
    <>
      <Breadcrumbs mb={4}>
        <Anchor component={Link} to="/visitors" size="sm">
          {t('visitors.title')}
        </Anchor>
      </Breadcrumbs>
      <PageHeader title={isDone ? t('visitors.erased') : t('visitors.erasing')}>
        {isDone ? (
          <Button
            variant="default"
            leftSection={<Icon name="down" size={16} />}
            onClick={() => saveReceipt(erasure)}
          >
            {t('visitors.downloadReceipt')}
          </Button>
        ) : null}
      </PageHeader>
      {erasure === undefined ? <Loading what="receipt" rows={3} height={96} /> : null}
      {erasure === undefined ? null : (
        <Stack gap="lg">
          {isDone ? <Summary /> : <Progress />}
          <Counts counts={erasure.counts} />
          {isDone ? <Receipt erasure={erasure} /> : null}
          {isDone ? (
            <div>
              <Button component={Link} to="/visitors">
                {t('visitors.backToVisitors')}
              </Button>
            </div>
          ) : null}
        </Stack>
      )}
    </>
  )
}

function saveReceipt(erasure: Erasure): void {
  saveText(`${JSON.stringify(erasure, null, 2)}\n`, `${erasure.id}.json`, 'application/json')
}

function Progress() {
  return (
    <Group role="status" gap="sm" wrap="nowrap">
      <Loader size="sm" />
      <Text size="sm">{t('visitors.erasingHelp')}</Text>
    </Group>
  )
}

function Summary() {
  return (
    <Group role="status" gap="sm" wrap="nowrap" c="var(--good)">
      <Icon name="check" />
      <Text size="sm" c="var(--text)">
        {t('visitors.erasedHelp')}
      </Text>
    </Group>
  )
}

const countNames = [
  'conversations',
  'turns',
  'items',
  'blobs',
  'ratings',
  'notes',
  'deliveries',
  'events',
  'search',
] as const satisfies readonly (keyof Erasure['counts'])[]

function Counts({ counts }: Pick<Erasure, 'counts'>) {
  return (
    <section className="panel erasure" aria-labelledby="erasure-counts">
      <Title order={2} id="erasure-counts">
        {t('visitors.deletedRows')}
      </Title>
      <dl className="erasure-counts">
        {countNames.map((name) => (
          <div key={name}>
            <dt>{t(`visitors.count.${name}`)}</dt>
            <dd>{renderNumber(counts[name])}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

function Receipt({ erasure }: { readonly erasure: Erasure }) {
  const {
    id,
    visitor_id: visitorId,
    started_at: startedAt,
    finished_at: finishedAt,
    remains,
    digest,
  } = erasure
  return (
    <>
      <section className="panel erasure" aria-labelledby="erasure-remains">
        <Title order={2} id="erasure-remains">
          {t('visitors.remains')}
        </Title>
        <ul className="erasure-remains">
          {remains.map((one) => (
            <li key={one}>{one}</li>
          ))}
        </ul>
      </section>
      <Facts
        label={t('visitors.receiptId')}
        facts={[
          [t('visitors.receiptId'), <code key="id">{id}</code>],
          [t('visitors.visitorId'), <code key="visitor">{visitorId}</code>],
          [t('visitors.started'), renderMoment(startedAt)],
          [t('visitors.finished'), finishedAt === null ? '–' : renderMoment(finishedAt)],
        ]}
      />
      {digest === null ? null : (
        <Stack gap={4} className="erasure-digest">
          <CodeBlock code={digest} what={t('visitors.digest')} />
          <Text size="xs" c="dimmed">
            {t('visitors.digestHelp')}
          </Text>
        </Stack>
      )}
    </>
  )
}
