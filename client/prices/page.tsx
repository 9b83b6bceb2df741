/** Shows the prices of all models, and lets administrators set, change and remove them. */
import './prices.css'
import { Badge, Button, Menu, Stack, Text } from '@mantine/core'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../api.ts'
import type { Column } from '../components/DataTable.tsx'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { ListView } from '../components/list/ListView.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty } from '../components/QueryStates.tsx'
import { Status } from '../components/Status.tsx'
import { renderMoment } from '../format.ts'
import { changeSearch, priceSources } from '../search.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { locale, t } from '../strings/language.ts'
import { type Price, rateOf } from './fields.ts'
import { PriceForm } from './PriceForm.tsx'
import { pricesQuery } from './queries.ts'

export function PricesPage() {
  const { is_administrator: isAdministrator } = useMe()
  if (isAdministrator) return <Prices />
  return (
    <>
      <PageHeader title={t('prices.title')} />
      <Empty icon="prices" title={t('admin.onlyAdministrators')}>
        {t('prices.notYoursHelp')}
      </Empty>
    </>
  )
}

type Doing =
  | { readonly what: 'set'; readonly price?: Price }
  | { readonly what: 'remove'; readonly price: Price }
  | { readonly what: 'clear'; readonly price: Price }

function Prices() {
  const [doing, setDoing] = useState<Doing>()
  const search = useSearch({ from: '/shell/prices' })
  const navigate = useNavigate({ from: '/prices' })
  const query = useQuery({ ...pricesQuery(search), placeholderData: keepPreviousData })
  return (
    <>
      <PageHeader title={t('prices.title')} about={t('prices.about')}>
        <Button leftSection={<Icon name="plus" size={16} />} onClick={() => setDoing({ what: 'set' })}>
          {t('prices.set')}
        </Button>
      </PageHeader>
      <ListView
        label={t('prices.title')}
        items="prices"
        columns={columns}
        query={query}
        idOf={({ id }) => id}
        nameOf={({ id }) => id}
        search={search}
        onSearch={(changes) =>
          void navigate({ search: (now) => changeSearch(now, changes), replace: 'q' in changes })
        }
        sorting={{ sort: 'id', order: 'asc' }}
        placeholder={t('prices.searchBy')}
        filters={[
          {
            name: 'source',
            label: t('prices.source'),
            all: t('prices.allSources'),
            options: priceSources.map((value) => ({ value, label: t(`prices.${value}`) })),
          },
        ]}
        menu={(price) => <PriceMenuItems price={price} setDoing={setDoing} />}
        empty={
          <Empty icon="prices" title={t('prices.empty')}>
            {t('prices.emptyHelp')}
          </Empty>
        }
      />
      <PriceDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const columns: readonly Column<Price>[] = [
  { name: 'prices.model', isMain: true, render: (price) => <ModelName {...price} /> },
  { name: 'prices.provider', render: ({ provider }) => <bdi>{provider}</bdi> },
  { name: 'prices.input', isNumber: true, render: ({ entry }) => <Rate entry={entry} name="input" /> },
  { name: 'prices.output', isNumber: true, render: ({ entry }) => <Rate entry={entry} name="output" /> },
  { name: 'prices.source', render: (price) => <Source {...price} /> },
  {
    name: 'prices.date',
    render: ({ date }) => (date === null ? <span className="quiet">–</span> : renderUtcDay(date)),
  },
]

function ModelName({ model, source, unpriced_requests: count, meter }: Price) {
  return (
    <Stack gap={0} className="price-model">
      <Text span size="sm" fw={500}>
        <bdi>{model}</bdi>
      </Text>
      {source === null && count > 0 ? (
        <Text span size="xs" c="dimmed">
          {t('prices.unpricedRequests', { count })}
        </Text>
      ) : null}
      {meter === null ? null : (
        <Text span size="xs">
          <Status tone="warn">{t('prices.meteredUntil', { time: renderMoment(meter.until) })}</Status>
        </Text>
      )}
    </Stack>
  )
}

function Rate({ entry, name }: { readonly entry: Price['entry']; readonly name: string }) {
  const rate = entry === null ? undefined : rateOf(entry, name)
  return rate === undefined ? <span className="quiet">–</span> : renderAmount(rate)
}

function Source({ source }: Price) {
  if (source === null) return <Status tone="warn">{t('prices.none')}</Status>
  const isOverride = source === 'override'
  return (
    <Badge variant="light" {...(isOverride ? { className: 'badge-accent' } : { color: 'gray' })}>
      {t(`prices.${source}`)}
    </Badge>
  )
}

/** Renders US dollars given as decimal text, with all decimals. */
function renderAmount(text: string): string {
  const decimals = text.split('.')[1]?.length ?? 0
  const digits = Math.max(2, decimals)
  const money = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const
  const format = new Intl.NumberFormat(locale(), { ...money, minimumFractionDigits: digits })
  return format.format(Number(text))
}

function renderUtcDay(day: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: 'medium', timeZone: 'UTC' }).format(Date.parse(day))
}

interface PriceMenuProps {
  readonly price: Price
  readonly setDoing: (doing: Doing) => void
}

function PriceMenuItems({ price, setDoing }: PriceMenuProps) {
  const isOwn = price.override !== null
  return (
    <>
      <Menu.Item onClick={() => setDoing({ what: 'set', price })}>
        {isOwn ? t('prices.changeMenu') : t('prices.setMenu')}
      </Menu.Item>
      <Menu.Item
        renderRoot={(props) => <Link to="/admin" search={{ tab: 'audit', target: price.id }} {...props} />}
      >
        {t('admin.viewAuditLog')}
      </Menu.Item>
      {price.meter === null ? null : (
        <Menu.Item onClick={() => setDoing({ what: 'clear', price })}>{t('prices.clearMeterMenu')}</Menu.Item>
      )}
      {isOwn ? (
        <Menu.Item c="var(--bad)" onClick={() => setDoing({ what: 'remove', price })}>
          {t('prices.removeMenu')}
        </Menu.Item>
      ) : null}
    </>
  )
}

function PriceDialogs({
  doing,
  onClose,
}: {
  readonly doing: Doing | undefined
  readonly onClose: () => void
}) {
  const queries = useQueryClient()
  const price = doing?.price
  const name = price?.id ?? ''
  const done = async (message: string) => {
    await queries.invalidateQueries({ queryKey: ['prices'] })
    showDone(message)
  }
  const remove = async () => {
    if (price === undefined) return
    await api.prices.remove.mutate({ provider: price.provider, model: price.model })
    await done(t('prices.removed'))
  }
  const clear = async () => {
    if (price === undefined) return
    await api.meters.delete.mutate({ provider: price.provider, model: price.model })
    await done(t('prices.meterCleared'))
  }
  return (
    <>
      <Dialog
        title={price === undefined ? t('prices.set') : t('prices.setFor', { name })}
        isOpen={doing?.what === 'set'}
        onClose={onClose}
        size="lg"
      >
        <PriceForm
          price={price}
          onCancel={onClose}
          onSaved={async () => {
            await done(t('prices.saved'))
            onClose()
          }}
        />
      </Dialog>
      <ConfirmDialog
        title={t('prices.removeNamed', { name })}
        isOpen={doing?.what === 'remove'}
        onClose={onClose}
        onConfirm={remove}
        action={t('prices.remove')}
        isDangerous
      >
        {t('prices.removeLoss')}
      </ConfirmDialog>
      <ConfirmDialog
        title={t('prices.clearMeterNamed', { name })}
        isOpen={doing?.what === 'clear'}
        onClose={onClose}
        onConfirm={clear}
        action={t('prices.clearMeter')}
      >
        {t('prices.clearMeterEffect')}
      </ConfirmDialog>
    </>
  )
}
