//! The Model Context Protocol face: a server on standard input and output.
//!
//! It translates: requests into calls of the planner, and what comes back into results that a model can act
//! on. Two protocol eras are served by one process: the one with a handshake, up to 2025-11-25, and the
//! one where every request stands for itself, from 2026-07-28. What belongs to a session is in the
//! planner's log and never in the connection. This is the only module that knows rmcp; standard output
//! carries JSON-RPC and nothing else.

mod app;
mod ask;
mod complete;
mod failure;
mod icons;
mod identity;
mod pace;
mod prompts;
mod resources;
mod schema;
mod stdio;
mod tools;
mod updates;

use std::sync::{Arc, OnceLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        DiscoverResult, GetPromptRequestParams, GetPromptResponse, InitializeRequestParams,
        InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
        ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        RequestStateCodec, ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams,
    },
    service::{RequestContext, ServerInitializeError, SubscriptionContext},
    transport::async_rw::AsyncRwTransport,
};
use tokio_util::sync::CancellationToken;

use crate::{
    mcp::{app::Apps, failure::Failure, stdio::Guarded, updates::Updates},
    planner::Planner,
};

/// How long lists that only a new version changes may be kept, in milliseconds.
const LIST_TTL_MS: u64 = 60 * 60 * 1000;

/// How the server is set up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether, where a client cannot ask its user, the agent may pass on the user's answer.
    pub relayed: Relayed,
}

/// What to do with an answer that the agent passes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Relayed {
    /// There is no way to pass one on.
    #[default]
    Refused,
    /// It counts, and the plan says so.
    Accepted,
}

/// Why the server stopped before its client did.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The operating system.
    #[error("the server cannot wait for input")]
    Runtime(#[source] std::io::Error),
    /// The first messages.
    #[error("the client does not begin as the protocol asks")]
    Beginning(#[source] Box<ServerInitializeError>),
    /// A bug.
    #[error("the server stopped unexpectedly")]
    Stopped(#[source] tokio::task::JoinError),
}

/// Serves until standard input ends.
///
/// # Errors
///
/// When the client does not speak the protocol, or the operating system refuses something.
pub fn serve(planner: Planner, options: Options) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let ended = runtime.block_on(run(Server::new(planner, options)));
    // A pending read of standard input cannot be cancelled, so nothing waits for it.
    runtime.shutdown_background();
    ended
}

async fn run(server: Server) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    let transport =
        Guarded::new(AsyncRwTransport::new_server(input, output), server.input_ended.clone());
    match server.serve(transport).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(ServeError::Stopped),
        // A client that only looked: it went away before it chose a lifecycle.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(ServeError::Beginning(Box::new(error))),
    }
}

/// What answers requests.
struct Server {
    planner: Arc<Planner>,
    options: Options,
    tools: OnceLock<Vec<Tool>>,
    /// The same for clients that show apps.
    tools_with_app: OnceLock<Vec<Tool>>,
    seal: OnceLock<RequestStateCodec>,
    updates: Updates,
    /// Fires when standard input ends.
    input_ended: CancellationToken,
}

impl Server {
    fn new(planner: Planner, options: Options) -> Self {
        Self {
            planner: Arc::new(planner),
            options,
            tools: OnceLock::new(),
            tools_with_app: OnceLock::new(),
            seal: OnceLock::new(),
            updates: Updates::default(),
            input_ended: CancellationToken::new(),
        }
    }

    fn tools(&self, apps: Apps) -> &[Tool] {
        let list = match apps {
            Apps::Unknown => &self.tools,
            Apps::Shown => &self.tools_with_app,
        };
        list.get_or_init(|| tools::list(self.options, apps))
    }

    /// Lets the planner work beside the loop that reads and writes messages.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Planner) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let planner = Arc::clone(&self.planner);
        tokio::task::spawn_blocking(move || work(&planner))
            .await
            .map_err(|error| Failure::internal(&error.to_string()))
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        identity::config()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        if app::apps(Some(&request.capabilities)) == Apps::Shown {
            app::announce(&mut result.capabilities);
        }
        Ok(result)
    }

    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        let mut result = DiscoverResult::from_server_info(versions, self.get_info());
        result.ttl_ms = LIST_TTL_MS;
        result.cache_scope = CacheScope::Public;
        if app::apps_of(&context) == Apps::Shown {
            app::announce(&mut result.capabilities);
            result.cache_scope = CacheScope::Private;
        }
        Ok(result)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let apps = app::apps_of(&context);
        // What depends on the client must not reach another one through a shared cache.
        let scope = match apps {
            Apps::Unknown => CacheScope::Public,
            Apps::Shown => CacheScope::Private,
        };
        Ok(ListToolsResult::with_all_items(self.tools(apps).to_vec())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(scope))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools(Apps::Unknown).iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tools::call(self, request, context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        Ok(prompts::get(&request.name, &arguments)?.into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let items = self.work(resources::list).await.map_err(Failure::into_protocol_error)?;
        Ok(ListResourcesResult::with_all_items(items)
            .with_ttl_ms(0)
            .with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates())
            .with_ttl_ms(LIST_TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.work(move |planner| resources::read(planner, &request.uri)).await;
        Ok(read.map_err(Failure::into_protocol_error)??.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.work(move |planner| complete::complete(planner, &request))
            .await
            .map_err(Failure::into_protocol_error)?
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(updates::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        tokio::select! {
            () = self.updates.forward(&context) => {}
            () = context.cancelled() => {}
            () = self.input_ended.cancelled() => {}
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.updates.subscribe(request.uri)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.updates.unsubscribe(&request.uri);
        Ok(())
    }
}
