"""scikit-learn with array_api_dispatch: what its estimators and metrics give for Arrays.

The data are those of the digits and of diabetes; the same on NumPy's arrays is what is right.
"""

import numpy as np
import pytest
import sklearn
from sklearn import metrics
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import (
    GammaRegressor,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    RidgeClassifier,
    RidgeClassifierCV,
    RidgeCV,
    TweedieRegressor,
)
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    GridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_validate,
    train_test_split,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KernelCenterer,
    LabelBinarizer,
    LabelEncoder,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVR
from sklearn.utils import all_estimators, get_tags

from conformance.clients.comparing import arrive, assert_matches
from conformance.clients.refusals import REFUSALS

DIGITS, DIGIT = (each[:360] for each in load_digits(return_X_y=True))
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
DIABETES *= np.sqrt(len(DIABETES))  # to a variance of one

DATA = {
    "digits": (DIGITS, DIGIT),
    "shades": (DIGITS / 16.0, DIGIT),
    "two digits": (DIGITS[DIGIT < 2], DIGIT[DIGIT < 2]),
    "diabetes": (DIABETES, PROGRESS),
    "kernel": (DIABETES[:60] @ DIABETES[:60].T, PROGRESS[:60]),
}
ROUNDING = {np.float64: 1e-7, np.float32: 5e-3}

ESTIMATORS = [
    (StandardScaler(), "digits"),
    (MinMaxScaler(feature_range=(-1, 2), clip=True), "digits"),
    (MaxAbsScaler(), "digits"),
    (Normalizer("l1"), "digits"),
    (Normalizer("l2"), "digits"),
    (Normalizer("max"), "digits"),
    (Binarizer(threshold=4.0), "digits"),
    (KernelCenterer(), "kernel"),
    (PolynomialFeatures(2, interaction_only=True), "diabetes"),
    (PolynomialFeatures((2, 3), include_bias=False), "diabetes"),
    (PCA(5, svd_solver="full"), "digits"),
    (PCA(5, svd_solver="full", whiten=True), "diabetes"),
    (PCA(0.8, svd_solver="covariance_eigh"), "diabetes"),
    (PCA("mle", svd_solver="full"), "diabetes"),
    (
        PCA(5, svd_solver="randomized", power_iteration_normalizer="QR", random_state=0),
        "digits",
    ),
    (Nystroem(n_components=20, kernel="rbf", random_state=0), "diabetes"),
    (Ridge(solver="svd"), "diabetes"),
    (Ridge(alpha=0.1, fit_intercept=False, solver="svd"), "diabetes"),
    (RidgeCV(alphas=(0.01, 0.1, 1.0)), "diabetes"),
    (RidgeClassifier(solver="svd"), "digits"),
    (RidgeClassifierCV(alphas=(0.1, 1.0, 10.0)), "digits"),
    (LogisticRegression(solver="lbfgs", C=1e-3, tol=1e-7), "shades"),
    (LogisticRegression(solver="lbfgs", C=1e-2, tol=1e-7), "two digits"),
    (PoissonRegressor(solver="lbfgs", tol=1e-7), "diabetes"),
    (LinearDiscriminantAnalysis(solver="svd"), "digits"),
    (GaussianNB(var_smoothing=1e-3), "digits"),
    (GaussianMixture(2, init_params="random", random_state=0, reg_covar=1e-3), "diabetes"),
    (make_pipeline(StandardScaler(), PCA(8), Ridge(solver="svd")), "diabetes"),
    (make_pipeline(MinMaxScaler(), LinearDiscriminantAnalysis()), "digits"),
    (FeatureUnion([("scaled", StandardScaler()), ("reduced", PCA(2))]), "diabetes"),
    (GridSearchCV(Ridge(solver="svd"), {"alpha": [0.01, 0.1, 1.0]}, cv=3), "diabetes"),
    (GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-2]}, cv=3), "digits"),
    (
        RandomizedSearchCV(
            make_pipeline(StandardScaler(), Ridge(solver="svd")),
            {"ridge__alpha": [0.1, 1.0, 10.0]},
            n_iter=2,
            cv=3,
            random_state=0,
        ),
        "diabetes",
    ),
]
ITERATIVE = (LogisticRegression, PoissonRegressor, GaussianMixture)
CONVERGENCE = 1e-5  # of those: where they stop depends on rounding
NUMBERS = (np.ndarray, np.generic, float, int)
APART = {
    "best_index_",  # this and the next are NumPy's for every library
    "best_score_",
    "n_iter_",  # depends on rounding
    "refit_time_",
}
METHODS = (
    "transform",
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "score_samples",
)


@pytest.fixture(autouse=True)
def _dispatch():
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture(params=ROUNDING, ids=lambda dtype: dtype.__name__)
def dtype(request):
    """The dtype of the data."""
    return request.param


def data(name, dtype, device=None):
    """Return the data, targets of classes as integers; as Arrays if there is a device."""
    X, y = DATA[name]
    X = X.astype(dtype)
    y = y.astype(dtype) if y.dtype.kind == "f" else y
    return (X, y) if device is None else (arrive(X, device), arrive(y, device))


def learned(estimator):
    """The attributes that an estimator has learned and that are arrays or numbers."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and name not in APART and isinstance(value, NUMBERS)
    }


def outcomes(estimator, x, y):
    """What the methods of a fitted estimator give, by their names."""
    results = {name: getattr(estimator, name)(x) for name in METHODS if hasattr(estimator, name)}
    if hasattr(estimator, "inverse_transform"):
        results["inverse_transform"] = estimator.inverse_transform(results["transform"])
    if hasattr(estimator, "score"):
        results["score"] = estimator.score(x, y)
    return results


# scikit-learn expects a division by zero that it silences for NumPy's arrays alone.
@pytest.mark.filterwarnings("ignore:invalid value encountered in divide:RuntimeWarning")
@pytest.mark.parametrize(("estimator", "name"), ESTIMATORS, ids=lambda each: str(each)[:40])
def test_estimators(estimator, name, dtype, device):
    X, y = data(name, dtype)
    expected = clone(estimator).fit(X, y)
    Xs, ys = data(name, dtype, device)
    result = clone(estimator).fit(Xs, ys)
    rtol = max(ROUNDING[dtype], CONVERGENCE if isinstance(estimator, ITERATIVE) else 0.0)
    for attribute, value in learned(expected).items():
        assert_matches(getattr(result, attribute), value, device, rtol, rtol)
    given = outcomes(result, Xs, ys)
    for method, value in outcomes(expected, X, y).items():
        assert_matches(given[method], value, device, rtol, rtol)
    if hasattr(expected, "best_params_"):
        assert result.best_params_ == expected.best_params_
        assert result.best_score_ == pytest.approx(expected.best_score_, rel=rtol)


@pytest.mark.filterwarnings("ignore:Class .* is deprecated:FutureWarning")
def test_every_estimator_that_says_so_is_tested():
    def supports(estimator_class):
        try:
            return get_tags(estimator_class()).array_api_support
        except (TypeError, AttributeError):  # it takes another estimator, of which it tells
            return False

    supported = {each for _, each in all_estimators() if supports(each)}
    tested = {type(each) for each, _ in ESTIMATORS} | {LabelEncoder}
    assert len(supported) > 12
    assert supported <= tested


def test_label_encoder(device):
    y = arrive(DIGIT, device)
    expected, result = LabelEncoder().fit(DIGIT), LabelEncoder().fit(y)
    assert_matches(result.classes_, expected.classes_, device)
    codes = result.transform(y)
    assert_matches(codes, expected.transform(DIGIT), device)
    assert_matches(result.inverse_transform(codes), DIGIT, device)


@pytest.mark.parametrize("labels", [DIGIT, DIGIT[DIGIT < 2]], ids=["ten classes", "two classes"])
def test_label_binarizer(labels, device):
    y = arrive(labels, device)
    expected, result = LabelBinarizer().fit(labels), LabelBinarizer().fit(y)
    columns = result.transform(y)
    assert_matches(columns, expected.transform(labels), device)
    assert_matches(result.inverse_transform(columns), labels, device)


@pytest.mark.parametrize("name", ["digits", "two digits"])
def test_calibration_by_temperature(name, device):
    def calibrated(x, y):
        classifier = FrozenEstimator(LinearDiscriminantAnalysis().fit(x, y))
        return CalibratedClassifierCV(classifier, method="temperature").fit(x, y)

    X, y = data(name, np.float64)
    Xs, ys = data(name, np.float64, device)
    expected, result = calibrated(X, y), calibrated(Xs, ys)
    assert_matches(result.predict(Xs), expected.predict(X), device)
    assert_matches(result.predict_proba(Xs), expected.predict_proba(X), device, 1e-4, 1e-6)


def test_splitting_and_cross_validation(device):
    X, y = data("diabetes", np.float64)
    Xs, ys = data("diabetes", np.float64, device)
    options = {"test_size": 0.25, "random_state": 3}
    assert_matches(train_test_split(Xs, ys, **options), train_test_split(X, y, **options), device)
    model = make_pipeline(MinMaxScaler(), Ridge(solver="svd"))
    predicted = cross_val_predict(model, X, y, cv=4)
    assert_matches(cross_val_predict(model, Xs, ys, cv=4), predicted, device, 1e-8)
    expected = cross_validate(model, X, y, cv=4)["test_score"]
    np.testing.assert_allclose(cross_validate(model, Xs, ys, cv=4)["test_score"], expected, 1e-8)


# -- metrics ------------------------------------------------------------------------------------

_RNG = np.random.default_rng(5)
SCORES = {
    "label": DIGIT % 3,
    "guess": np.where(_RNG.random(len(DIGIT)) < 0.7, DIGIT % 3, 1),
    "yes": DIGIT % 2,
    "maybe": np.where(_RNG.random(len(DIGIT)) < 0.7, DIGIT % 2, 1),
    "group": np.arange(len(PROGRESS)) % 3,
    "likely": np.clip(DIGIT % 2 + _RNG.normal(0.0, 0.4, len(DIGIT)), 0.01, 0.99),
    "shares": _RNG.dirichlet([1.0, 2.0, 1.0], len(DIGIT)),
    "sets": (_RNG.random((40, 3)) < 0.4).astype(int),
    "other_sets": (_RNG.random((40, 3)) < 0.4).astype(int),
    "target": PROGRESS,
    "estimate": PROGRESS * 0.9 + 10.0 * _RNG.random(len(PROGRESS)),
    "targets": np.stack([PROGRESS, PROGRESS[::-1]], axis=1),
    "estimates": np.stack([PROGRESS * 0.9, PROGRESS[::-1] + 2.0], axis=1),
    "weight": _RNG.random(len(PROGRESS)),
    "rows": np.abs(DIABETES[:30]),
    "more_rows": np.abs(DIABETES[30:60]),
}
METRICS = [
    (
        "adjusted_rand_score class_likelihood_ratios classification_report matthews_corrcoef"
        " mutual_info_score",
        lambda f, g: f(g["yes"], g["maybe"]),
    ),
    ("calinski_harabasz_score", lambda f, g: f(g["estimates"], g["group"])),
    (
        "accuracy_score balanced_accuracy_score cohen_kappa_score confusion_matrix zero_one_loss"
        " hamming_loss multilabel_confusion_matrix",
        lambda f, g: f(g["label"], g["guess"]),
    ),
    (
        "f1_score jaccard_score precision_score recall_score precision_recall_fscore_support",
        lambda f, g: f(g["label"], g["guess"], average="weighted"),
    ),
    ("fbeta_score", lambda f, g: f(g["label"], g["guess"], beta=0.5, average=None)),
    (
        "accuracy_score hamming_loss zero_one_loss multilabel_confusion_matrix",
        lambda f, g: f(g["sets"], g["other_sets"]),
    ),
    (
        "f1_score jaccard_score precision_score recall_score",
        lambda f, g: f(g["sets"], g["other_sets"], average="samples", zero_division=0.0),
    ),
    (
        "average_precision_score brier_score_loss d2_brier_score d2_log_loss_score log_loss"
        " det_curve precision_recall_curve roc_curve roc_auc_score confusion_matrix_at_thresholds",
        lambda f, g: f(g["yes"], g["likely"]),
    ),
    (
        "brier_score_loss d2_brier_score d2_log_loss_score log_loss",
        lambda f, g: f(g["label"], g["shares"]),
    ),
    (
        "r2_score explained_variance_score mean_absolute_error mean_pinball_loss mean_squared_error"
        " mean_squared_log_error median_absolute_error d2_absolute_error_score d2_pinball_score"
        " mean_absolute_percentage_error root_mean_squared_error root_mean_squared_log_error",
        lambda f, g: [
            f(g["target"], g["estimate"], sample_weight=g["weight"]),
            f(g["targets"], g["estimates"], multioutput="raw_values"),
        ],
    ),
    (
        "max_error mean_tweedie_deviance mean_poisson_deviance mean_gamma_deviance"
        " d2_tweedie_score",
        lambda f, g: f(g["target"], g["estimate"]),
    ),
    (
        "cosine_similarity cosine_distances euclidean_distances manhattan_distances linear_kernel"
        " polynomial_kernel rbf_kernel sigmoid_kernel laplacian_kernel chi2_kernel"
        " additive_chi2_kernel paired_cosine_distances paired_euclidean_distances"
        " paired_manhattan_distances pairwise_distances pairwise_distances_argmin pairwise_kernels",
        lambda f, g: f(g["rows"], g["more_rows"]),
    ),
]
CASES = [(name, call) for names, call in METRICS for name in names.split()]


def metric(name):
    """The function of this name."""
    return getattr(metrics, name, None) or getattr(metrics.pairwise, name)


@pytest.mark.parametrize(("name", "call"), CASES, ids=[name for name, _ in CASES])
def test_metrics(name, call, device):
    given = {each: arrive(value, device) for each, value in SCORES.items()}
    expected = call(metric(name), SCORES)
    assert_matches(call(metric(name), given), expected, device, 1e-8, 1e-10)


# -- what is refused ----------------------------------------------------------------------------


def _listed_alone(x, y):
    for estimator in (SVR(), GammaRegressor(), TweedieRegressor(power=1.5)):
        with pytest.raises(TypeError):
            estimator.fit(x, y)
        with sklearn.config_context(array_api_dispatch=False):
            assert type(estimator.fit(x, y).predict(x)) is np.ndarray


def _other_solvers(x, y):
    with pytest.raises(ValueError, match="only supports solver 'svd'"):
        Ridge(solver="cholesky").fit(x, y)


def _silence(x, _):
    with pytest.warns(RuntimeWarning, match="invalid value encountered in divide"):
        StandardScaler().fit(x)


REFUSED = {
    "estimators that scikit-learn does not list, such as SVR and GammaRegressor": _listed_alone,
    "Ridge with another solver than svd": _other_solvers,
    "StandardScaler without a warning": _silence,
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused(what, device):
    REFUSED[what](*data("diabetes", np.float64, device))


def test_each_refusal_is_tested():
    lines = [each for each in REFUSALS if each.library == "scikit-learn"]
    assert {each.what for each in lines} == set(REFUSED)
    assert {each.version for each in lines} == {sklearn.__version__}
