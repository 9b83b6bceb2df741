/** Shows all model providers, and lets administrators add, test, change and delete them. */
import { t } from '../strings/language.ts'
import './providers.css'
import { ActionIcon, Badge, Button, Menu, Skeleton, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { api } from '../api.ts'
import { type Column, DataTable } from '../components/DataTable.tsx'
import { ConfirmDialog, Dialog } from '../components/Dialog.tsx'
import { PageHeader } from '../components/PageHeader.tsx'
import { Empty, Failed, Loading } from '../components/QueryStates.tsx'
import { Status, type Tone } from '../components/Status.tsx'
import { renderMilliseconds } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { showDone } from '../shell/toast.tsx'
import { useMe } from '../shell/use-me.ts'
import { findPreset, otherServer, Presets } from './Presets.tsx'
import { ProviderForm } from './ProviderForm.tsx'
import { type Provider, providersQuery, useRefreshProviders } from './queries.ts'
import { TestResult } from './TestResult.tsx'

export function ProvidersPage() {
  const { is_administrator: isAdministrator } = useMe()
  if (isAdministrator) return <Providers />
  return (
    <>
      <PageHeader title={t('shell.providers')} />
      <Empty icon="models" title={t('admin.onlyAdministrators')}>
        {t('providers.notYoursHelp')}
      </Empty>
    </>
  )
}

function Providers() {
  const { data, error, refetch } = useQuery(providersQuery)
  const openAdd = useOpenAdd()
  const canAdd = data !== undefined && data.allowed !== 'off'
  const hasReal = data?.data.some(({ kind }) => kind !== 'mock') ?? false
  return (
    <>
      <PageHeader title={t('shell.providers')} about={t('providers.about')}>
        {canAdd && hasReal ? (
          <Button leftSection={<Icon name="plus" size={16} />} onClick={() => openAdd('')}>
            {t('providers.add')}
          </Button>
        ) : null}
      </PageHeader>
      {error !== null && data === undefined ? (
        <Failed error={error} what="providers" retry={() => void refetch()} />
      ) : null}
      {data === undefined && error === null ? <Loading what="providers" /> : null}
      {data === undefined ? null : (
        <Stack gap="lg">
          {canAdd && !hasReal ? <FirstProvider /> : null}
          <ProviderTable providers={data.data} />
          {data.allowed === 'off' ? (
            <Text size="sm" c="dimmed">
              {t('providers.off')}
            </Text>
          ) : null}
          {data.allowed === 'public' ? (
            <Text size="sm" c="dimmed">
              {t('providers.public')}
            </Text>
          ) : null}
          {canAdd ? <AddDialog takenNames={data.data.map(({ name }) => name)} /> : null}
        </Stack>
      )}
    </>
  )
}

/**
 * Returns a function that opens the dialog for adding a provider. An empty preset id shows the presets first;
 * undefined closes the dialog.
 */
function useOpenAdd(): (presetId: string | undefined) => void {
  const navigate = useNavigate()
  return (presetId) =>
    void navigate({ to: '/providers', search: presetId === undefined ? {} : { add: presetId } })
}

/** Shows the presets while only the mock model is available. */
function FirstProvider() {
  const openAdd = useOpenAdd()
  return (
    <section className="panel first-provider" aria-labelledby="first-provider">
      <Title order={2} id="first-provider">
        {t('firstRun.connect')}
      </Title>
      <Text size="sm" c="dimmed" maw={640}>
        {t('providers.firstHelp')}
      </Text>
      <Presets onChoose={({ id }) => openAdd(id)} />
    </section>
  )
}

function AddDialog({ takenNames }: { readonly takenNames: readonly string[] }) {
  const { add } = useSearch({ from: '/shell/providers' })
  const openAdd = useOpenAdd()
  const close = () => openAdd(undefined)
  const preset = findPreset(add)
  const isOther = preset === undefined || preset === otherServer
  return (
    <Dialog
      title={isOther ? t('providers.add') : t('providers.addNamed', { name: preset.title })}
      isOpen={add !== undefined}
      onClose={close}
      size={preset === undefined ? 'lg' : 'md'}
    >
      {preset === undefined ? (
        <Presets onChoose={({ id }) => openAdd(id)} />
      ) : (
        <ProviderForm key={preset.id} preset={preset} takenNames={takenNames} onClose={close} />
      )}
    </Dialog>
  )
}

type Doing = { readonly what: 'test' | 'edit' | 'delete'; readonly provider: Provider }

function ProviderTable({ providers }: { readonly providers: readonly Provider[] }) {
  const [doing, setDoing] = useState<Doing>()
  const actions: Column<Provider> = {
    name: 'common.actions',
    isBare: true,
    render: (provider) => <ProviderMenu provider={provider} setDoing={setDoing} />,
  }
  return (
    <>
      <DataTable
        label={t('providers.table')}
        columns={[...columns, actions]}
        rows={providers}
        keyOf={({ name, source }) => `${source}/${name}`}
      />
      <ProviderDialogs doing={doing} onClose={() => setDoing(undefined)} />
    </>
  )
}

const columns: readonly Column<Provider>[] = [
  { name: 'providers.provider', render: (provider) => <ProviderName {...provider} /> },
  { name: 'providers.status', render: (provider) => <ProviderState {...provider} /> },
  { name: 'providers.models', isNumber: true, render: ({ models }) => models },
  {
    name: 'usage.latency',
    isNumber: true,
    render: ({ latency_ms: latencyMs, kind }) =>
      latencyMs === null || kind === 'mock' ? (
        <span className="quiet">–</span>
      ) : (
        renderMilliseconds(latencyMs)
      ),
  },
  { name: 'providers.apiKey', render: (provider) => <KeyHint {...provider} /> },
  {
    name: 'providers.source',
    render: ({ source }) =>
      source === 'console' ? (
        <Badge variant="light" className="badge-accent">
          {t('providers.ofConsole')}
        </Badge>
      ) : (
        <Badge variant="light" color="gray">
          {t('providers.ofEnvironment')}
        </Badge>
      ),
  },
]

function ProviderName({ name, base_url: url, kind }: Provider) {
  return (
    <Stack gap={0}>
      <Text span size="sm" fw={500}>
        {name}
      </Text>
      <Text span size="xs" c="dimmed" className="provider-url">
        {url ?? t(kind === 'mock' ? 'providers.builtIn' : 'providers.inProcess')}
      </Text>
    </Stack>
  )
}

const states: Readonly<Record<Provider['status'], Tone>> = {
  up: 'good',
  down: 'bad',
  checking: 'active',
  unused: 'warn',
}

function ProviderState({ status, problem }: Provider) {
  return (
    <Stack gap={2} className="provider-state">
      <Status tone={states[status]}>{t(`providers.${status}`)}</Status>
      {problem === null ? null : (
        <Text span size="xs" c="dimmed">
          {problem}
        </Text>
      )}
    </Stack>
  )
}

function KeyHint({ has_key: hasKey, key_hint: hint }: Provider) {
  if (!hasKey) return <span className="quiet">{t('common.none')}</span>
  return hint === null ? t('providers.keySet') : <code>…{hint}</code>
}

interface ProviderMenuProps {
  readonly provider: Provider
  readonly setDoing: (doing: Doing) => void
}

function ProviderMenu({ provider, setDoing }: ProviderMenuProps) {
  const { name, source, kind } = provider
  const isRemote = kind === 'gateway' || kind === 'local'
  const isOwn = source === 'console'
  return (
    <Menu position="bottom-end" width={200}>
      <Menu.Target>
        <ActionIcon
          className="row-menu"
          variant="subtle"
          color="gray"
          size="md"
          aria-label={t('common.actionsFor', { name })}
        >
          <Icon name="dots" />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {isRemote ? (
          <Menu.Item onClick={() => setDoing({ what: 'test', provider })}>{t('providers.test')}</Menu.Item>
        ) : null}
        {isOwn ? (
          <Menu.Item onClick={() => setDoing({ what: 'edit', provider })}>
            {t('providers.editMenu')}
          </Menu.Item>
        ) : null}
        <Menu.Item
          renderRoot={(props) => <Link to="/admin" search={{ tab: 'audit', target: name }} {...props} />}
        >
          {t('admin.viewAuditLog')}
        </Menu.Item>
        {isOwn ? (
          <Menu.Item c="var(--bad)" onClick={() => setDoing({ what: 'delete', provider })}>
            {t('conversations.deleteMenu')}
          </Menu.Item>
        ) : null}
      </Menu.Dropdown>
    </Menu>
  )
}

function ProviderDialogs({ doing, onClose }: { doing: Doing | undefined; onClose: () => void }) {
  const refresh = useRefreshProviders()
  const provider = doing?.provider
  const name = provider?.name ?? ''
  const remove = async () => {
    await api.providers.remove.mutate({ name })
    await refresh()
    showDone(t('providers.deleted'))
  }
  return (
    <>
      <Dialog title={t('providers.testNamed', { name })} isOpen={doing?.what === 'test'} onClose={onClose}>
        <TestOfSaved name={name} />
      </Dialog>
      <Dialog title={t('providers.editNamed', { name })} isOpen={doing?.what === 'edit'} onClose={onClose}>
        {provider === undefined ? null : (
          <ProviderForm preset={otherServer} provider={provider} takenNames={[]} onClose={onClose} />
        )}
      </Dialog>
      <ConfirmDialog
        title={t('providers.deleteNamed', { name })}
        isOpen={doing?.what === 'delete'}
        onClose={onClose}
        onConfirm={remove}
        action={t('providers.delete')}
        isDangerous
      >
        {t('providers.deleteLoss')}
      </ConfirmDialog>
    </>
  )
}

/** Tests a saved provider when the dialog opens. */
function TestOfSaved({ name }: { readonly name: string }) {
  const refresh = useRefreshProviders()
  const { data, error, isFetching, refetch } = useQuery({
    queryKey: ['provider-test', name],
    queryFn: async () => {
      const result = await api.providers.test.mutate({ name })
      void refresh()
      return result
    },
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  })
  return (
    <Stack gap="md">
      {isFetching ? (
        <div role="status" aria-label={t('providers.testing', { name })} aria-busy="true">
          <Skeleton height={96} radius="md" />
        </div>
      ) : null}
      {!isFetching && error !== null ? (
        <Failed error={error} what="testResult" retry={() => void refetch()} />
      ) : null}
      {!isFetching && data !== undefined ? <TestResult result={data} /> : null}
      <div>
        <Button variant="default" loading={isFetching} onClick={() => void refetch()}>
          {t('providers.testAgain')}
        </Button>
      </div>
    </Stack>
  )
}
